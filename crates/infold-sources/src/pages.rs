//! Finds the next page of a list in the headers of this one.

use http::HeaderMap;
use infold_provider::{RestServer, RestUrl};

/// Returns the address of the next page; none at the end.
///
/// The header `X-Next-Page` takes precedence (GitLab with numbered pages) over the link `next` (GitHub, and GitLab with
/// pages by key). Servers behind a proxy may write links to another host: such a link is followed at this server, the
/// only one that may see the token.
pub fn next_page(server: &RestServer, from: &RestUrl, headers: &HeaderMap) -> Option<RestUrl> {
    if let Some(page) = headers.get("x-next-page") {
        let page = page.to_str().unwrap_or_default().trim();
        let is_number = !page.is_empty() && page.bytes().all(|byte| byte.is_ascii_digit());
        return is_number.then(|| from.with_parameter("page", page));
    }
    let links = headers.get_all("link").iter();
    let link = links
        .filter_map(|link| next_link(link.to_str().ok()?))
        .next()?;
    let next = server
        .linked(from, link)
        .unwrap_or_else(|| from.with_query_of(link));
    // A page whose next page is itself would never end.
    (next != *from).then_some(next)
}

/// Returns the target of the link `next` of a `Link` header.
fn next_link(header: &str) -> Option<&str> {
    let mut rest = header;
    loop {
        let (target, after) = rest.split_once('<')?.1.split_once('>')?;
        let end = end_of_parameters(after);
        let is_next = after[..end].split(';').any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            let mut relations = value.trim().trim_matches('"').split_ascii_whitespace();
            name.trim().eq_ignore_ascii_case("rel")
                && relations.any(|relation| relation.eq_ignore_ascii_case("next"))
        });
        if is_next {
            return Some(target);
        }
        rest = &after[end..];
    }
}

/// Returns where the parameters of a link end: at a comma outside of quotes.
fn end_of_parameters(text: &str) -> usize {
    let mut is_quoted = false;
    let end = text.find(|c: char| {
        is_quoted ^= c == '"';
        c == ',' && !is_quoted
    });
    end.unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_link_is_found_among_others() {
        let header = r#"<https://h/i?page=1>; rel="prev", <https://h/i?a=1,2&page=3>; title="a, b"; REL="Next last""#;
        assert_eq!(next_link(header), Some("https://h/i?a=1,2&page=3"));
        assert_eq!(next_link("<https://h/2>; rel=next"), Some("https://h/2"));
        for none in [
            "",
            "<https://h/1>; rel=\"last\"",
            "rel=next",
            "<https://h",
            "<x>; rel=\"nextish\"",
        ] {
            assert_eq!(next_link(none), None, "{none}");
        }
    }
}
