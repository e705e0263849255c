//! Permissions, which tools require and a situation grants.

use std::fmt;

/// A permission, such as `read` or `fs:write`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Permission(String);

/// Separates a permission from a part of it.
const PART_SEPARATOR: char = ':';

impl Permission {
    /// Parses a permission; none if the text is empty, or has spaces or empty parts.
    pub fn new(text: &str) -> Option<Permission> {
        let is_part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
        let is_valid = text.split(PART_SEPARATOR).all(is_part);
        is_valid.then(|| Permission(text.to_owned()))
    }

    /// Returns it as a text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this permission includes the other: `fs` grants `fs:read`, and `f` does not.
    pub fn grants(&self, other: &Permission) -> bool {
        match other.0.strip_prefix(&self.0) {
            Some(rest) => rest.is_empty() || rest.starts_with(PART_SEPARATOR),
            None => false,
        }
    }

    /// Returns the permissions that grant this one: itself, and those that it is a part of.
    pub fn granted_by(&self) -> impl Iterator<Item = &str> {
        let parts = self.0.match_indices(PART_SEPARATOR);
        let wider = parts.map(|(at, _)| &self.0[..at]);
        wider.chain([self.0.as_str()])
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_grants_its_parts_and_no_substring() {
        let permission = |text: &str| Permission::new(text).expect("a permission");
        let fs = permission("fs");
        assert!(fs.grants(&permission("fs")));
        assert!(fs.grants(&permission("fs:read")));
        assert!(permission("fs:read").grants(&permission("fs:read:logs")));
        for (granted, required) in [
            ("fs:read", "fs"),
            ("fs", "fsx"),
            ("f", "fs"),
            ("read", "fs:read"),
            ("fs:re", "fs:read"),
        ] {
            assert!(
                !permission(granted).grants(&permission(required)),
                "{granted}"
            );
        }
        assert!(
            ["", ":", "fs:", ":read", "a b"]
                .iter()
                .all(|it| Permission::new(it).is_none())
        );
        let wider: Vec<String> = permission("a:b:c")
            .granted_by()
            .map(str::to_owned)
            .collect();
        assert_eq!(wider, ["a", "a:b", "a:b:c"]);
    }
}
