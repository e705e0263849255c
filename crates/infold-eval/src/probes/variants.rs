//! The ways in which probes differ: the planted fact, its language, its surroundings and its speaker.

named! {
    /// The subject of a planted fact.
    FactKind,
    /// All kinds.
    FACT_KINDS: 15
    /// A limit on permitted actions.
    Constraint = "constraint",
    /// An agreement.
    Decision = "decision",
    /// A number or a setting.
    Value = "value",
    /// A value that replaces an earlier one; the newer one has to survive.
    Corrected = "corrected",
    /// The place of a file.
    Path = "path",
    /// The cause of a failure.
    Cause = "cause",
    /// A person who is responsible.
    Person = "person",
    /// A date by which something is due.
    Deadline = "deadline",
    /// A preference of a person.
    Preference = "preference",
    /// A proposal that was turned down, with the reason.
    Rejected = "rejected",
    /// The place of a secret, not the secret.
    Credential = "credential",
    /// A number with a unit.
    Quantity = "quantity",
    /// The input or output of an interface.
    Api = "api",
    /// A question without an answer yet.
    Question = "question",
    /// A thing that must not be touched.
    Untouchable = "untouchable",
}

named! {
    /// The language that people speak.
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
    /// The messages around the facts.
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
    /// The speaker of a fact.
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
