//! In what probes differ: what is planted, in what language, among what, and by whom.

/// Defines choices that have names, and the list of all of them.
macro_rules! named {
    (
        $(#[$about:meta])* $name:ident,
        $(#[$list_about:meta])* $list:ident: $count:literal
        $($(#[$doc:meta])* $variant:ident = $text:literal,)*
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        $(#[$list_about])*
        pub const $list: [$name; $count] = [$($name::$variant,)*];

        impl $name {
            /// Its name.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }
    };
}

named! {
    /// What a planted fact is about.
    Kind,
    /// All kinds.
    KINDS: 15
    /// Something that limits what may be done.
    Constraint = "constraint",
    /// What was agreed on.
    Decision = "decision",
    /// A number or a setting.
    Value = "value",
    /// A value that replaces one said before; the newer one has to survive.
    Corrected = "corrected",
    /// Where a file is.
    Path = "path",
    /// Why something failed.
    Cause = "cause",
    /// Who is responsible.
    Person = "person",
    /// By when something is due.
    Deadline = "deadline",
    /// How somebody likes it.
    Preference = "preference",
    /// A proposal that was turned down, with the reason.
    Rejected = "rejected",
    /// Where a secret is kept, not the secret.
    Credential = "credential",
    /// A number with a unit.
    Quantity = "quantity",
    /// What an interface takes or gives.
    Api = "api",
    /// What nobody has answered yet.
    Question = "question",
    /// What is not to be touched.
    Untouchable = "untouchable",
}

named! {
    /// In what language people speak.
    Language,
    /// All languages.
    LANGUAGES: 10
    /// English.
    English = "en",
    /// German.
    German = "de",
    /// French.
    French = "fr",
    /// Spanish.
    Spanish = "es",
    /// Portuguese.
    Portuguese = "pt",
    /// Italian.
    Italian = "it",
    /// Russian.
    Russian = "ru",
    /// Chinese.
    Chinese = "zh",
    /// Japanese.
    Japanese = "ja",
    /// Korean.
    Korean = "ko",
}

named! {
    /// What fills a conversation around the facts.
    Noise,
    /// All kinds of noise.
    NOISES: 7
    /// Files of code that are read, and tests that are run.
    Coding = "coding",
    /// Attachments in base64.
    Base64 = "base64",
    /// Lists in JSON.
    Json = "json",
    /// Pages in HTML.
    Html = "html",
    /// Lines of logs.
    Logs = "logs",
    /// Plain talk without any tool.
    Chat = "chat",
    /// Queries and their rows.
    Sql = "sql",
}

named! {
    /// Who says a fact.
    Speaker,
    /// All speakers.
    SPEAKERS: 3
    /// The user.
    User = "user",
    /// The assistant, as something it found out.
    Assistant = "assistant",
    /// A tool, and then the assistant says it again.
    Tool = "tool",
}
