use serde_json::Value;

use crate::hash;

/// Returns the signature that the scripted provider issues for `text`.
///
/// It is a digest, so that a server knows what it issued without keeping it: a signature that
/// does not belong to the text beside it was never issued with it.
pub fn seal(text: &str) -> String {
    let digest = hash(format!("sealed by infold-testkit: {text}").as_bytes());
    format!("c2VhbGVk{digest:016x}")
}

/// Names of models whose signatures hold only behind the messages that they were issued behind.
const BINDING_MODELS: [&str; 2] = ["claude-fable-5-1", "claude-opus-5-5"];

/// Whether this model binds a thought to all that was said before it.
pub(crate) fn binds_thoughts(model: &str) -> bool {
    BINDING_MODELS.iter().any(|name| model.contains(name))
}

/// What was said before a thought, as far as a signature is bound to it. Cache markers may move.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prefix(u64);

impl Prefix {
    /// The same with one more message.
    pub fn with(self, message: &Value) -> Prefix {
        let mut message = message.clone();
        remove_marks(&mut message);
        Prefix(hash(format!("{} {message}", self.0).as_bytes()))
    }

    /// What is signed of a thought that stands here.
    pub fn bound(self, text: &str) -> String {
        format!("{:016x} {text}", self.0)
    }
}

fn remove_marks(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("cache_control");
            members.values_mut().for_each(remove_marks);
        }
        Value::Array(elements) => elements.iter_mut().for_each(remove_marks),
        _ => {}
    }
}

/// Whether this signature was issued for `text`.
pub(super) fn is_sealed(text: &str, signature: &str) -> bool {
    seal(text) == signature
}
