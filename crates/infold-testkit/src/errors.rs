use infold_wire::Wire;

/// An error as a provider sends it.
#[derive(Clone, Copy, Debug)]
pub struct NamedError {
    /// Provider and kind.
    pub name: &'static str,
    /// The wire it comes on.
    pub wire: Wire,
    /// The HTTP status.
    pub status: u16,
    /// The headers that matter.
    pub headers: &'static [(&'static str, &'static str)],
    /// The body.
    pub body: &'static str,
}

/// Returns the errors that are known by name.
pub fn errors() -> &'static [NamedError] {
    ERRORS
}

const JSON: (&str, &str) = ("content-type", "application/json");

const ERRORS: &[NamedError] = &[NamedError {
    name: "openai/busy",
    wire: Wire::Chat,
    status: 429,
    headers: &[JSON, ("retry-after", "1")],
    body: "",
}];
