//! The addresses of requests, by API and base URL.

use infold_provider::{Endpoint, EndpointError, Secret};

fn endpoint(api: &str, base: Option<&str>) -> Endpoint {
    Endpoint::new("test", api, base, None).expect("an endpoint")
}

#[test]
fn bases_come_with_and_without_their_version() {
    let local = "http://localhost:8080";
    for (api, base, url) in [
        ("openai", "", "https://api.openai.com/v1/chat/completions"),
        ("responses", "", "https://api.openai.com/v1/responses"),
        ("anthropic", "", "https://api.anthropic.com/v1/messages"),
        (
            "gemini",
            "",
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        ("ollama", "", "http://127.0.0.1:11434/api/chat"),
        ("lmstudio", "", "http://127.0.0.1:1234/v1/chat/completions"),
        ("openai", "@", "@/v1/chat/completions"),
        ("openai", "@/", "@/v1/chat/completions"),
        ("openai", "@/v1", "@/v1/chat/completions"),
        ("openai", "@/v1/", "@/v1/chat/completions"),
        ("openai", " @/v1// ", "@/v1/chat/completions"),
        ("openai", "@/v1/chat/completions", "@/v1/chat/completions"),
        ("openai", "@/api", "@/api/v1/chat/completions"),
        ("openai", "@/api/v1", "@/api/v1/chat/completions"),
        ("openai", "@/api/paas/v4", "@/api/paas/v4/chat/completions"),
        (
            "openai",
            "@/v1beta/openai/",
            "@/v1beta/openai/chat/completions",
        ),
        ("openai", "@/vendor", "@/vendor/v1/chat/completions"),
        ("responses", "@/v1/responses", "@/v1/responses"),
        ("lmstudio", "@", "@/v1/chat/completions"),
        ("anthropic", "@", "@/v1/messages"),
        ("anthropic", "@/v1/", "@/v1/messages"),
        ("anthropic", "@/v1/messages", "@/v1/messages"),
        ("anthropic", "@/anthropic", "@/anthropic/v1/messages"),
        (
            "gemini",
            "@",
            "@/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            "gemini",
            "@/v1beta",
            "@/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            "gemini",
            "@/v1/",
            "@/v1/models/m:streamGenerateContent?alt=sse",
        ),
        ("ollama", "@", "@/api/chat"),
        ("ollama", "@/api", "@/api/chat"),
        ("ollama", "@/api/", "@/api/chat"),
        ("ollama", "@/v1", "@/api/chat"),
        ("ollama", "@/api/chat", "@/api/chat"),
        ("ollama", "@/models/ollama/", "@/models/ollama/api/chat"),
    ] {
        let base = base.replace('@', local);
        let made = endpoint(api, (!base.is_empty()).then_some(&base));
        assert_eq!(made.url("m", true), url.replace('@', local), "{api} {base}");
    }
}

#[test]
fn a_model_has_a_place_in_geminis_paths_and_cannot_leave_it() {
    let url = |model| endpoint("gemini", Some("http://localhost")).url(model, false);
    let at = |path: &str| format!("http://localhost/v1beta/{path}:generateContent");
    assert_eq!(url("gemini-2.5-flash"), at("models/gemini-2.5-flash"));
    assert_eq!(
        url("models/gemini-2.5-flash"),
        at("models/gemini-2.5-flash")
    );
    assert_eq!(url("tunedModels/mine"), at("tunedModels/mine"));
    assert_eq!(url("a?b#c d%"), at("models/a%3Fb%23c%20d%25"));
    for odd in ["..", "../../x", "a/../../../x", "./x", "."] {
        let url = url(odd);
        assert!(url.starts_with("http://localhost/v1beta/"), "{odd}: {url}");
    }
}

#[test]
fn what_is_secret_in_a_base_is_not_shown() {
    let base = "https://user:canary@host/v1?token=canary";
    let made = endpoint("openai", Some(base));
    assert_eq!(made.url("m", true), "https://host/v1/chat/completions");
    assert!(!format!("{made:?}").contains("canary"), "{made:?}");
}

#[test]
fn only_the_makers_services_need_a_key() {
    for api in ["openai", "responses", "anthropic", "gemini"] {
        assert!(endpoint(api, None).needs_key());
        assert!(!endpoint(api, Some("http://127.0.0.1:1")).needs_key());
    }
    for api in ["ollama", "lmstudio"] {
        assert!(!endpoint(api, None).needs_key());
        assert!(endpoint(api, None).is_local());
    }
    let official = |base| endpoint("openai", base).is_openai_itself();
    assert!(official(None) && official(Some("https://api.openai.com")));
    assert!(!official(Some("https://openrouter.ai/api/v1")));
    assert!(!endpoint("anthropic", None).is_openai_itself());
    for base in [
        "http://localhost:1",
        "http://127.9.9.9",
        "http://[::1]:8080/v1",
    ] {
        assert!(endpoint("openai", Some(base)).is_local(), "{base}");
    }
    assert!(!endpoint("openai", Some("http://localhost.example.org")).is_local());
}

#[test]
fn what_cannot_be_an_endpoint_is_refused() {
    let new = |api, base, key: Option<&str>| {
        let key = key.map(|key| Secret::new(key.to_owned()));
        Endpoint::new("mine", api, base, key).map(|_| ())
    };
    let error = new("opnai", None, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`mine` has the unknown API `opnai` (known: openai, responses, anthropic, gemini, ollama, lmstudio)"
    );
    for base in [
        "",
        "localhost:8080",
        "ftp://x",
        "http://",
        "/v1",
        "http://[canary",
    ] {
        let error = new("openai", Some(base), None).unwrap_err();
        assert!(
            matches!(error, EndpointError::Address { .. }),
            "{base}: {error}"
        );
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    for key in ["a\nb", "ключ", "a\0"] {
        let error = new("openai", None, Some(key)).unwrap_err();
        assert!(matches!(error, EndpointError::Key { .. }), "{error}");
        assert!(!error.to_string().contains(key), "{error}");
    }
    assert_eq!(new("openai", None, Some(" \n")), Ok(()));
}
