//! Listing and calling tools.

use infold_toolbox::{SettingsError, ToolLimits, Toolbox, ToolboxSettings};

use crate::{Fixture, scripted};

#[tokio::test]
async fn tools_are_listed_and_called() {
    let fixture = Fixture::new(&[]);
    assert!(fixture.starts("scripted").is_empty(), "started on demand");
    let list = fixture.toolbox.tools().await;
    assert_eq!(list.problems, []);
    let echo = &list.tools[0];
    assert_eq!(
        (echo.name.as_str(), echo.description.as_str()),
        ("echo", "Does echo")
    );
    assert_eq!(echo.input_schema["properties"]["text"]["type"], "string");
    assert_eq!(echo.server.as_deref(), Some("scripted"));
    assert!(echo.read_only);
    assert!(!list.tools[1].read_only);
    assert_eq!(fixture.works("echo", "hé").await, "hé");
    assert_eq!(fixture.works("mcp__scripted__echo", "x").await, "x");
    assert_eq!(fixture.works("echo", "").await, "(no output)");
    assert_eq!(
        fixture.works("mixed", "").await,
        "before\n[image image/png, about 6 bytes, not shown]\n[file:///a]\ninside\n[resource b: file:///b]"
    );
    assert_eq!(fixture.starts("scripted").len(), 1);
}

#[tokio::test]
async fn a_call_needs_no_listing_before() {
    let fixture = Fixture::new(&[]);
    assert_eq!(fixture.works("echo", "first").await, "first");
}

#[tokio::test]
async fn a_server_gets_its_own_keys_and_no_others() {
    let fixture = Fixture::new(&[]);
    assert_eq!(fixture.works("env", "OWN_TOKEN").await, "for the server");
    assert_eq!(fixture.works("env", "OPENAI_API_KEY").await, "(unset)");
    assert_eq!(fixture.works("env", "LANG").await, "C");
}

#[tokio::test]
async fn names_in_conflict_are_prefixed() {
    let servers = vec![scripted("one", &[]), scripted("two", &["tools=1"])];
    let fixture = Fixture::with(servers, ToolLimits::default());
    let list = fixture.toolbox.tools().await;
    let names: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"mcp__one__echo") && names.contains(&"mcp__two__echo"));
    assert!(names.contains(&"tool0") && !names.contains(&"echo"));
    let one = fixture.works("mcp__one__pid", "").await;
    let two = fixture.works("mcp__two__pid", "").await;
    assert_ne!(one, two);
    assert_eq!(fixture.starts("one"), [one]);
    let unclear = fixture.fails("echo", "x").await;
    assert!(unclear.contains("mcp__one__echo"), "{unclear}");
}

#[tokio::test]
async fn a_list_that_changes_is_listed_again() {
    let fixture = Fixture::new(&[]);
    let before = fixture.toolbox.tools().await.tools.len();
    fixture.works("grow", "").await;
    let list = fixture.toolbox.tools().await;
    assert_eq!(list.tools.len(), before + 1);
    assert_eq!(list.tools[before].name, "tool0");
}

#[tokio::test]
async fn too_many_tools_are_cut_and_doubles_are_told() {
    let limits = ToolLimits {
        max_server_tools: 100,
        ..ToolLimits::default()
    };
    let servers = vec![
        scripted("many", &["tools=10000"]),
        scripted("double", &["duplicate"]),
    ];
    let fixture = Fixture::with(servers, limits);
    let list = fixture.toolbox.tools().await;
    let of = |server: &str| {
        let tools = list
            .tools
            .iter()
            .filter(|tool| tool.server.as_deref() == Some(server));
        tools.count()
    };
    assert_eq!((of("many"), of("double")), (100, 13));
    let problems: Vec<_> = list
        .problems
        .iter()
        .map(|problem| &*problem.reason)
        .collect();
    assert_eq!(
        problems,
        [
            "it has more than 100 tools; the rest is not offered",
            "it has several tools of the name `echo`; only the first is offered"
        ]
    );
}

#[tokio::test]
async fn a_server_that_knows_only_the_newest_handshake_works() {
    let fixture = Fixture::new(&["only-modern"]);
    assert_eq!(fixture.problem().await, "");
    assert_eq!(fixture.works("echo", "modern").await, "modern");
}

#[test]
fn names_of_servers_are_checked() {
    for names in [&["a", "a"][..], &[""], &["a b"], &["é"], &["a__b/c"]] {
        let servers = names.iter().map(|name| scripted(name, &[])).collect();
        let refused = Toolbox::new(ToolboxSettings {
            servers,
            ..ToolboxSettings::default()
        });
        assert!(
            matches!(refused, Err(SettingsError::Server { .. })),
            "{names:?}"
        );
    }
}
