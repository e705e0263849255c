//! The environment of commands and servers.

use std::ffi::{OsStr, OsString};

/// Returns an environment without variables that look like keys.
pub(crate) fn without_secrets(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    environment
        .into_iter()
        .filter(|(name, _)| !is_secret_name(name))
        .collect()
}

/// Says whether a variable of that name may hold a key.
fn is_secret_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    // Whole words: `KEYBOARD` and `TOKENIZERS_PARALLELISM` are none.
    let is_word = |words: &[&str]| name.split('_').any(|part| words.contains(&part));
    let is_directory = name == "PWD" || name == "OLDPWD";
    has(&["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL"])
        || is_word(&["KEY", "KEYS", "TOKEN", "TOKENS", "PAT", "PASS", "PWD"]) && !is_directory
        || name.ends_with("KEY")
        || name.ends_with("TOKEN")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_left_out_and_the_rest_stays() {
        let secret = [
            "OPENAI_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "GITHUB_TOKEN",
            "GH_PAT",
            "AWS_SECRET_ACCESS_KEY",
            "DB_PASSWORD",
            "PGPASSWORD",
            "my_secret",
            "SSH_KEY_PASSPHRASE",
            "AWS_SESSION_TOKEN",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "APIKEY",
            "TOKEN",
            "MYSQL_PWD",
            "openai_api_key",
            "KEY_FILE",
            "NPMTOKEN",
        ];
        let plain = [
            "PATH",
            "HOME",
            "PWD",
            "OLDPWD",
            "LANG",
            "TERM",
            "KEYBOARD",
            "TOKENIZERS_PARALLELISM",
            "PATHS",
            "SSH_AUTH_SOCK",
            "CARGO_HOME",
            "XDG_RUNTIME_DIR",
            "PASSENGER_COUNT",
        ];
        for name in secret {
            assert!(is_secret_name(OsStr::new(name)), "{name}");
        }
        for name in plain {
            assert!(!is_secret_name(OsStr::new(name)), "{name}");
        }
    }
}
