//! Tells one boot of the machine from another.

use std::sync::OnceLock;

/// Returns the id of this boot; zero if the system does not provide one.
pub fn id() -> u128 {
    static ID: OnceLock<u128> = OnceLock::new();
    *ID.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let id = text.ok().and_then(|text| text.trim().parse().ok());
        id.map_or(0, |id: uuid::Uuid| id.as_u128())
    })
}
