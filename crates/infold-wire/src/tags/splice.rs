//! Changes one member of an object and no other byte of it.

use crate::Json;

/// Returns `object` without the members named `name`.
///
/// Reverts [`set_member`] byte for byte.
pub(super) fn remove_member(object: &[u8], name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len());
    let mut copied = 0;
    let mut members = Json::checked(object).members().peekable();
    let mut kept_before = false;
    let mut end_before = 0;
    while let Some((key, value)) = members.next() {
        let next = members.peek().map(|(key, _)| key.range().start);
        let end = value.range().end;
        if !key.is(name) {
            kept_before = true;
        } else if kept_before {
            // With the comma before it.
            out.extend_from_slice(&object[copied..end_before]);
            copied = end;
        } else {
            // With the comma after it.
            out.extend_from_slice(&object[copied..key.range().start]);
            copied = next.unwrap_or(end);
        }
        end_before = end;
    }
    out.extend_from_slice(&object[copied..]);
    out
}

/// Returns `object` with the member `name` set to `value`, in its old place or at the end.
pub(super) fn set_member(object: &[u8], name: &str, value: &str) -> Vec<u8> {
    let members = || Json::checked(object).members();
    let splice = |range: std::ops::Range<usize>, new: &str| {
        [&object[..range.start], new.as_bytes(), &object[range.end..]].concat()
    };
    // Of duplicates the last one counts, so that is the one to change.
    if let Some((_, old)) = members().filter(|(key, _)| key.is(name)).last() {
        return splice(old.range(), value);
    }
    let last = members().last().map(|(_, value)| value.range().end);
    let comma = if last.is_some() { "," } else { "" };
    // An empty object gets it after its opening bracket.
    let at = last.unwrap_or(1);
    splice(at..at, &format!("{comma}\"{name}\":{value}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut_text(object: &str) -> String {
        String::from_utf8(remove_member(object.as_bytes(), "x")).unwrap()
    }

    fn put_text(object: &str) -> String {
        String::from_utf8(set_member(object.as_bytes(), "x", "7")).unwrap()
    }

    #[test]
    fn a_member_goes_with_one_comma() {
        assert_eq!(cut_text(r#"{"x":1}"#), "{}");
        assert_eq!(cut_text(r#"{ "x":1 }"#), "{  }");
        assert_eq!(cut_text(r#"{ "x":1, "b":2 }"#), r#"{ "b":2 }"#);
        assert_eq!(cut_text(r#"{"a":1 , "x":1 , "b":2}"#), r#"{"a":1 , "b":2}"#);
        assert_eq!(
            cut_text(r#"{"a":{"x":1},"x":[1,{}] }"#),
            r#"{"a":{"x":1} }"#
        );
        assert_eq!(cut_text(r#"{"a":1}"#), r#"{"a":1}"#);
    }

    #[test]
    fn duplicates_go_together() {
        assert_eq!(cut_text(r#"{"x":1,"\u0078":2,"b":3}"#), r#"{"b":3}"#);
        assert_eq!(cut_text(r#"{"x":1,"b":3,"x":2,"x":4}"#), r#"{"b":3}"#);
        assert_eq!(cut_text(r#"{"x":1,"x":2}"#), "{}");
    }

    #[test]
    fn a_member_keeps_its_place_or_comes_last() {
        assert_eq!(put_text("{ }"), r#"{"x":7 }"#);
        assert_eq!(put_text("{\"a\":1 \n}"), "{\"a\":1,\"x\":7 \n}");
        assert_eq!(put_text(r#"{"x":"", "a":1}"#), r#"{"x":7, "a":1}"#);
        assert_eq!(put_text(r#"{"x":1,"x":2}"#), r#"{"x":1,"x":7}"#);
    }

    /// An object of up to five members, some of them named `x`, with odd white space.
    fn any_object() -> impl Strategy<Value = String> {
        let space = || prop::sample::select(vec!["", " ", "\n\t"]);
        let key = prop::sample::select(vec![r#""x""#, r#""\u0078""#, r#""a""#, r#""x\ud83d""#]);
        let value = prop::sample::select(vec!["1e999", r#""},\"""#, r#"[{"x":1}, ""]"#, "{ }"]);
        let member = (space(), key, space(), value, space());
        let member = member.prop_map(|(a, key, b, value, c)| format!("{a}{key}{b}:{a}{value}{c}"));
        let members = prop::collection::vec(member, 0..5);
        (members, space()).prop_map(|(members, a)| format!("{{{a}{}}}", members.join(",")))
    }

    proptest! {
        /// The member is removed, and the rest is unchanged.
        #[test]
        fn cutting_takes_that_member_only(object in any_object()) {
            let members = |text: &str| -> Vec<String> {
                let members = Json::parse(text.as_bytes()).unwrap().members();
                members.filter(|(key, _)| !key.is("x")).map(|member| format!("{member:?}")).collect()
            };
            let rest = cut_text(&object);
            prop_assert!(Json::parse(rest.as_bytes()).unwrap().get("x").is_none());
            prop_assert_eq!(members(&rest), members(&object));
        }

        /// Removing a member reverts adding it.
        #[test]
        fn cutting_undoes_putting(object in any_object()) {
            let without = cut_text(&object);
            prop_assert_eq!(cut_text(&put_text(&without)), without);
        }
    }
}
