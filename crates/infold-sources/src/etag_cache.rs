//! A small file of pages with their ETags: a page that has not changed costs no request of the limit.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use http::{HeaderMap, HeaderValue};
use infold_wire::{Json, quote};

/// How many bytes of pages are kept.
const MAX_CACHE_BYTES: usize = 8 << 20;

/// The headers that are kept with a page: those that name the next one.
const KEPT_HEADERS: [&str; 2] = ["link", "x-next-page"];

/// Pages by their address, the least recently used first.
#[derive(Debug, Default)]
pub struct EtagCache {
    file: Option<PathBuf>,
    pages: VecDeque<CachedPage>,
    bytes: usize,
    has_changed: bool,
}

/// A page as the server sent it last.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedPage {
    url: String,
    etag: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl EtagCache {
    /// Reads a cache; one that is missing or damaged is empty.
    pub fn open(file: Option<PathBuf>) -> EtagCache {
        let mut cache = EtagCache {
            file,
            ..EtagCache::default()
        };
        let text = cache.file.as_deref().and_then(|file| read(file).ok());
        for line in text
            .iter()
            .flat_map(|text| text.split(|byte| *byte == b'\n'))
        {
            cache.pages.extend(CachedPage::parse(line));
        }
        cache.bytes = cache.pages.iter().map(CachedPage::bytes).sum();
        cache
    }

    /// Returns the page of an address, and makes it the most recently used.
    pub fn get(&mut self, url: &str) -> Option<&CachedPage> {
        let at = self.pages.iter().position(|page| page.url == url)?;
        let page = self.pages.remove(at)?;
        self.pages.push_back(page);
        self.pages.back()
    }

    /// Keeps a page, if it has an ETag and is not too large.
    pub fn put(&mut self, url: &str, headers: &HeaderMap, body: &[u8]) {
        let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.to_owned());
        let (Some(etag), Ok(body)) = (text("etag"), std::str::from_utf8(body)) else {
            return;
        };
        let kept = KEPT_HEADERS.into_iter();
        let page = CachedPage {
            url: url.to_owned(),
            etag,
            headers: kept.filter_map(|name| Some((name, text(name)?))).collect(),
            body: body.to_owned(),
        };
        self.has_changed = true;
        if let Some(at) = self.pages.iter().position(|page| page.url == url)
            && let Some(old) = self.pages.remove(at)
        {
            self.bytes -= old.bytes();
        }
        if page.bytes() > MAX_CACHE_BYTES / 4 {
            return;
        }
        self.bytes += page.bytes();
        self.pages.push_back(page);
        while self.bytes > MAX_CACHE_BYTES
            && let Some(old) = self.pages.pop_front()
        {
            self.bytes -= old.bytes();
        }
    }

    /// Writes the file, if anything has changed. It appears whole, and only its owner can read it: pages may
    /// be of private repositories.
    pub fn save(&mut self) -> io::Result<()> {
        let Some(file) = self.file.as_deref().filter(|_| self.has_changed) else {
            return Ok(());
        };
        let dir = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(dir)?;
        // A new temporary file is readable by its owner alone.
        let mut new = tempfile::NamedTempFile::new_in(dir)?;
        for page in &self.pages {
            new.write_all(page.line().as_bytes())?;
        }
        new.persist(file)?;
        self.has_changed = false;
        Ok(())
    }
}

impl CachedPage {
    /// Returns the ETag.
    pub fn etag(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&self.etag).ok()
    }

    /// Returns the headers that name the next page.
    pub fn headers(&self) -> HeaderMap {
        let value = |(name, text): &(&'static str, String)| {
            let value = HeaderValue::from_str(text).ok()?;
            Some((http::HeaderName::from_static(name), value))
        };
        self.headers.iter().filter_map(value).collect()
    }

    /// Returns the body.
    pub fn body(&self) -> &[u8] {
        self.body.as_bytes()
    }

    fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(_, text)| text.len());
        self.url.len() + self.etag.len() + self.body.len() + headers.sum::<usize>()
    }

    fn line(&self) -> String {
        let header =
            |(name, text): &(&'static str, String)| format!(",{}:{}", quote(name), quote(text));
        let headers: String = self.headers.iter().map(header).collect();
        format!(
            "{{\"url\":{},\"etag\":{}{headers},\"body\":{}}}\n",
            quote(&self.url),
            quote(&self.etag),
            quote(&self.body)
        )
    }

    fn parse(line: &[u8]) -> Option<CachedPage> {
        let json = Json::parse(line).ok()?;
        let text = |name: &str| Some(json.get(name)?.text()?.into_owned());
        let kept = KEPT_HEADERS.into_iter();
        Some(CachedPage {
            url: text("url")?,
            etag: text("etag")?,
            headers: kept.filter_map(|name| Some((name, text(name)?))).collect(),
            body: text("body")?,
        })
    }
}

/// Reads a file, as much of it as a cache writes.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Escapes can make a page longer than itself.
    File::open(file)?
        .take(4 * MAX_CACHE_BYTES as u64)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(etag: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("etag", etag.parse().expect("a header"));
        headers.insert("link", "<x>; rel=\"next\"".parse().expect("a header"));
        headers
    }

    #[test]
    fn pages_are_there_again_and_damage_is_no_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("below/sources.jsonl");
        let mut cache = EtagCache::open(Some(file.clone()));
        cache.put("u", &headers("W/\"1\""), "[\"é\\n\"]".as_bytes());
        cache.put("v", &headers("\"2\""), b"[]");
        cache.put("no etag", &HeaderMap::new(), b"[]");
        cache.put("no text", &headers("3"), b"\xff");
        cache.save().expect("written");
        let mut again = EtagCache::open(Some(file.clone()));
        assert_eq!(again.pages, cache.pages);
        let page = again.get("u").expect("a page");
        assert_eq!(
            (page.body(), page.headers()["link"].as_bytes()),
            ("[\"é\\n\"]".as_bytes(), &b"<x>; rel=\"next\""[..])
        );
        let mut bytes = std::fs::read(&file).expect("a file");
        bytes[3] = b'\xff';
        std::fs::write(&file, bytes).expect("written");
        let mut damaged = EtagCache::open(Some(file));
        assert!(damaged.get("u").is_none() && damaged.get("v").is_some());
    }

    #[test]
    fn the_cache_stays_small_and_keeps_what_was_used_last() {
        let mut cache = EtagCache::default();
        let body = vec![b' '; MAX_CACHE_BYTES / 8];
        for at in 0..8 {
            cache.put(&at.to_string(), &headers("1"), &body);
            assert!(cache.get("0").is_some(), "{at}");
        }
        assert!(cache.bytes <= MAX_CACHE_BYTES && cache.get("1").is_none());
        cache.put("huge", &headers("1"), &vec![b' '; MAX_CACHE_BYTES]);
        assert!(cache.get("huge").is_none());
    }
}
