//! The conditions for offering the tools, and their names.

use infold_wire::{Json, Wire};
use serde_json::{Value, json};

use crate::blocks::Block;
use crate::client::{Client, Office};

/// The names of the tools of the last request.
fn tools(office: &Office) -> Vec<String> {
    let calls = office.calls();
    let last = calls.last().expect("a call");
    let json = last.json().expect("JSON");
    let mut names = Vec::new();
    let mut put = |tool: Json<'_>| {
        let function = tool.get("function").unwrap_or(tool);
        let name = function.get("name").and_then(Json::text);
        names.extend(name.map(|name| name.into_owned()));
    };
    for tool in json.get("tools").into_iter().flat_map(Json::elements) {
        match tool.get("functionDeclarations") {
            Some(list) => list.elements().for_each(&mut put),
            None => put(tool),
        }
    }
    names
}

/// The tools of a request with these members.
fn offered(office: &Office, wire: Wire, members: Value) -> Vec<String> {
    let mut client = Client::new(office, wire, true, "this");
    client.members = members;
    client.turn();
    tools(office)
}

#[test]
fn they_stand_behind_the_clients_own_once_something_is_folded() {
    for wire in Wire::ALL {
        let office = Office::new();
        let mut client = Client::new(&office, wire, true, "this");
        let rest = client.messages.split_off(5);
        client.turn();
        assert_eq!(tools(&office), ["run"], "{wire}: nothing is folded");
        client.messages.truncate(5);
        client.messages.extend(rest);
        for _ in 0..2 {
            client.turn();
            assert_eq!(
                tools(&office),
                ["run", "search_history", "recall"],
                "{wire}"
            );
        }
        let alone = offered(&Office::new(), wire, json!({"tools": null}));
        assert_eq!(alone, ["search_history", "recall"], "{wire}");
        office.is_accepted();
    }
    let off = Office::with(infold_testkit::Model::picky(), "");
    assert_eq!(offered(&off, Wire::Chat, json!({})), ["run"]);
}

#[test]
fn look_ups_are_not_shown_where_their_tools_are_not_offered() {
    for wire in Wire::ALL {
        let mut office = Office::new();
        let mut client = Client::new(&office, wire, true, "this");
        client.members = json!({"tools": null});
        let rounds = [
            vec![Block::Lookup("nothing".to_owned())],
            vec![Block::Text("There is nothing.".to_owned())],
        ];
        office.say(wire, &rounds);
        client.turn();
        let (messages, task) = (client.messages, client.task);
        // Also after a restart the look-up is where it was.
        for (config, shows) in [("serve:\n  recall_tool: true\n", true), ("", false)] {
            office.restart(config);
            let mut client = Client::new(&office, wire, true, "this");
            client.members = json!({"tools": null});
            (client.messages, client.task) = (messages.clone(), task.clone());
            client.turn();
            let sent = office.calls().last().expect("a call").text();
            assert_eq!(sent.contains("search_history"), shows, "{wire}: {sent}");
            assert!(sent.contains("There is nothing."), "{wire}");
            office.is_accepted();
        }
    }
}

#[test]
fn a_tool_of_the_client_keeps_its_name() {
    let own = json!([{"type": "function", "function": {"name": "recall", "parameters": {"type": "object"}}}]);
    let office = Office::new();
    let names = offered(&office, Wire::Chat, json!({"tools": own}));
    assert_eq!(names, ["recall", "infold_search_history", "infold_recall"]);
}

#[test]
fn what_the_client_chose_stays_what_it_chose() {
    let lenient = || {
        let model = infold_testkit::Model {
            strict: false,
            ..infold_testkit::Model::default()
        };
        Office::with(model, "serve:\n  recall_tool: true\n")
    };
    let office = lenient();
    let forced = json!({"tool_choice": "required", "tools": null});
    assert!(
        offered(&office, Wire::Chat, forced).is_empty(),
        "nothing but ours could be called"
    );
    for choice in [
        json!("none"),
        json!("required"),
        json!({"type": "function", "function": {"name": "run"}}),
    ] {
        let office = Office::new();
        let names = offered(&office, Wire::Chat, json!({"tool_choice": choice}));
        assert_eq!(names.len(), 3, "{choice}");
        let calls = office.calls();
        let sent: Value =
            serde_json::from_str(&calls.last().expect("a call").text()).expect("JSON");
        assert_eq!(sent["tool_choice"], choice);
    }
    for members in [
        json!({"n": 2}),
        json!({"functions": [{"name": "f", "parameters": {}}], "tools": null}),
    ] {
        let office = lenient();
        let names = offered(&office, Wire::Chat, members);
        assert!(!names.contains(&"recall".to_owned()), "{names:?}");
    }
}
