//! Look-ups in forks, after a rewind, with redaction, and in live events.

use std::io::{BufRead as _, BufReader, Write as _};

use infold::show::LogSnapshot;
use infold_store::{Contexts, Durability, LogError};
use infold_testkit::{Model, Step};
use infold_wire::Wire;
use serde_json::{Value, json};

use crate::blocks::Block;
use crate::client::{Client, FACT, Office, word};

fn text(text: &str) -> Block {
    Block::Text(text.to_owned())
}

fn lookup() -> Block {
    Block::Lookup(word(217))
}

/// The last request.
fn last(office: &Office) -> String {
    office.calls().last().expect("a call").text()
}

#[test]
fn whoever_goes_on_from_the_reply_in_another_way_has_its_look_ups() {
    for wire in Wire::ALL {
        // The first question was answered: a fork. Else a rewind.
        for is_fork in [true, false] {
            let office = Office::new();
            let mut client = Client::new(&office, wire, true, "this");
            office.say(wire, &[vec![lookup()], vec![text("It is 15029.")]]);
            client.turn();
            let messages = client.messages.clone();
            if is_fork {
                client.turn();
            } else {
                office.next([Step::error(403, r#"{"error":{"message":"not now"}}"#)]);
                assert_eq!(client.post().status, 403, "{wire}");
            }
            let shown = last(&office);
            assert!(shown.contains(FACT), "{wire}: {shown}");
            let mut other = Client::new(&office, wire, true, "this");
            other.messages = messages;
            other.messages.pop();
            other.ask("And what else?");
            other.turn();
            assert_eq!(other.task != client.task, is_fork, "{wire}");
            let shown = last(&office);
            assert!(shown.contains(FACT), "{wire} {is_fork}: {shown}");
            other.turn();
            assert!(last(&office).contains(FACT), "{wire} {is_fork}");
            office.is_accepted();
        }
    }
}

#[test]
fn with_redaction_the_provider_gets_what_the_client_has_or_what_was_said() {
    let secret = &format!("{}_{}", "ghp", "R4kq9ZtX2vLm7WcY1bNd5hJf8sAe3uGpQo6i");
    let config = "redact: true\nserve:\n  recall_tool: true\n";
    for wire in Wire::ALL {
        let mut office = Office::with(Model::picky(), config);
        let mut client = Client::new(&office, wire, true, "this");
        let said = format!("The key is {secret}, as it was.");
        office.say(wire, &[vec![lookup()], vec![text(&said)]]);
        client.turn();
        client.turn();
        let sent = last(&office);
        assert!(sent.contains(secret), "{wire}: {sent}");
        assert!(!sent.contains("[redacted"), "{wire}: {sent}");
        assert!(
            !office.proxy.kept().contains(secret),
            "{wire}: nothing of it is kept"
        );
        office.is_accepted();
        // A restart changes nothing, and neither do look-ups without secrets.
        let (messages, task) = (client.messages, client.task);
        office.restart(config);
        let mut client = Client::new(&office, wire, true, "this");
        (client.messages, client.task) = (messages, task);
        office.say(wire, &[vec![lookup()], vec![text("It is 15029.")]]);
        client.turn();
        client.turn();
        let sent = last(&office);
        assert!(sent.contains(FACT), "{wire}: {sent}");
        assert!(
            sent.contains(secret) && !sent.contains("[redacted"),
            "{wire}"
        );
        office.is_accepted();
    }
}

#[test]
fn results_name_only_what_is_offered() {
    let own = json!([{"type": "function", "function": {"name": "recall", "parameters": {"type": "object"}}}]);
    for (tools, recall) in [(json!(null), "recall"), (own, "infold_recall")] {
        let office = Office::new();
        let mut client = Client::new(&office, Wire::Chat, true, "this");
        client.members = json!({"tools": tools});
        client.turn();
        let sent: Value = serde_json::from_str(&last(&office)).expect("JSON");
        let offered = sent["tools"].as_array().expect("tools");
        let offered: Vec<&str> = offered
            .iter()
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect();
        let search = *offered
            .iter()
            .find(|name| name.ends_with("search_history"))
            .expect("it is offered");
        let calls = [
            (search, json!({"query": word(217)})),
            (recall, json!({"range": "e9999"})),
            (recall, json!({"range": "1", "task": "all"})),
        ];
        for (name, arguments) in calls {
            office.next([Step::call(name, arguments.to_string()), Step::say("So.")]);
            let task = client.post().header("x-infold-task").map(str::to_owned);
            assert!(task.is_some());
            let said = office.calls().last().expect("a call").messages();
            let result = said.last().expect("a result");
            assert!(result.contains("\"tool\""), "{result}");
            // The result may repeat the given name as an unknown one.
            let result = result.replace("no argument `task`", "");
            assert!(!result.contains("task"), "{name}: {result}");
            assert!(!result.contains("list_conversations"), "{name}: {result}");
            if name == search {
                let named = format!(" {recall}, with `range`");
                assert!(result.contains(&named), "{result}");
            }
        }
    }
}

#[test]
fn whoever_watches_is_told_of_look_ups() {
    let office = Office::new();
    let mut stream = office.proxy.connect();
    let head = format!(
        "GET /infold/api/events HTTP/1.1\r\nhost: {}\r\n\r\n",
        office.proxy.address
    );
    stream.write_all(head.as_bytes()).expect("it is sent");
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    while !line.contains(": infold") {
        lines.read_line(&mut line).expect("it opens");
    }
    let mut client = Client::new(&office, Wire::Chat, true, "this");
    let wrong = Block::Lookup(String::new());
    office.say(
        Wire::Chat,
        &[vec![lookup(), wrong], vec![text("It is 15029.")]],
    );
    client.turn();
    let mut told = Vec::new();
    while told.len() < 2 {
        line.clear();
        assert!(lines.read_line(&mut line).expect("a line") > 0, "{told:?}");
        if line.trim() == "event: lookup" {
            line.clear();
            lines.read_line(&mut line).expect("its data");
            let data = line.strip_prefix("data: ").expect("data");
            told.push(serde_json::from_str::<Value>(data).expect("JSON"));
        }
    }
    for event in &told {
        assert_eq!(event["task"].as_str(), client.task.as_deref(), "{event}");
        assert_eq!(event["change"]["tool"], "search_history", "{event}");
        assert_eq!(event["change"]["failed"], false, "{event}");
    }
    let chars = told[0]["change"]["chars"].as_u64().expect("a number");
    let sent: Value = serde_json::from_str(&office.calls()[1].text()).expect("JSON");
    let results = sent["messages"].as_array().expect("messages");
    let result = results[results.len() - 2]["content"].as_str();
    assert_eq!(chars, result.expect("a result").chars().count() as u64);
}

#[test]
fn a_view_says_of_look_ups_what_they_are() {
    for wire in Wire::ALL {
        let office = Office::new();
        let mut client = Client::new(&office, wire, true, "this");
        office.say(wire, &[vec![lookup()], vec![text("It is 15029.")]]);
        client.turn();
        client.turn();
        let directory = office.proxy.directory();
        let contexts = Contexts::new(directory.path(), Durability::Never);
        let task = client.task.as_deref().expect("a task");
        let log = contexts.read(task.parse().expect("an id")).expect("a log");
        let seen = LogSnapshot::new(log, None).expect("a snapshot");
        let view = seen.view().expect("a view");
        let mut notes = Vec::new();
        seen.pieces(&view, false, &mut |entry| {
            notes.extend(entry.line().map(|line| line.note));
            Ok::<_, LogError>(())
        })
        .expect("a view");
        let count = |note: &str| notes.iter().filter(|it| it.contains(note)).count();
        assert_eq!(count("no result"), 0, "{wire}: {notes:?}");
        // The call and its result.
        assert_eq!(count("look-up"), 3, "{wire}: {notes:?}");
        assert_eq!(count("with the look-ups"), 1, "{wire}: {notes:?}");
    }
}
