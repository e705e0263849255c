//! Which task a request belongs to: stories of clients, told to the desk without a server around it.

mod office;

use bytes::Bytes;
use infold_serve::{Body, Call, Name};
use infold_wire::{Reply, Wire};
use office::{Office, assistant, bytes, reply, system, user};
use serde_json::{Value, json};

#[test]
fn a_conversation_that_goes_on_is_one_task() {
    let mut office = Office::new(100_000);
    let first = office.turn(&[system("today is Monday"), user("hi")], "hello", None);
    // The system prompt is made anew each time, the reply comes back in another hand.
    let echoed = json!({"content": [{"type": "text", "text": "hello\n"}], "role": "assistant", "reasoning_content": "hm"});
    let second = [
        system("today is Tuesday"),
        user("hi"),
        echoed,
        user("and then?"),
    ];
    assert_eq!(office.turn(&second, "nothing", None), first);
    office.restart();
    let mut third = second.to_vec();
    third.extend([assistant("nothing"), user("bye")]);
    assert_eq!(office.turn(&third, "bye", None), first);
    assert_eq!(
        office.shows(first),
        ["hi", "hello", "and then?", "nothing", "bye", "bye"]
    );
    assert_eq!(office.tasks(), 1);
}

#[test]
fn a_request_sent_again_is_a_retry() {
    let office = Office::new(100_000);
    let (exchange, _) = office.ask(&[user("hi")], None);
    let (mut again, _) = office.ask(&[user("hi")], None);
    assert_eq!(exchange.task(), again.task());
    drop(exchange);
    again.record(reply("hello")).expect("it is recorded");
    assert_eq!(office.shows(again.task()), ["hi", "hello"]);
}

#[test]
fn parallel_samples_do_not_mix() {
    let office = Office::new(100_000);
    let (mut one, _) = office.ask(&[user("hi")], None);
    let (mut two, _) = office.ask(&[user("hi")], None);
    let (mut three, _) = office.ask(&[user("hi")], None);
    one.record(reply("first")).expect("it is recorded");
    two.record(reply("second")).expect("it is recorded");
    three.record(reply("first")).expect("it is recorded");
    assert_eq!(one.task(), three.task());
    assert_ne!(one.task(), two.task());
    assert_eq!(office.shows(one.task()), ["hi", "first"]);
    assert_eq!(office.shows(two.task()), ["hi", "second"]);
    // Each goes on as itself.
    let more = |text: &str| [user("hi"), assistant(text), user("more")];
    assert_eq!(office.turn(&more("second"), "2", None), two.task());
    assert_eq!(office.turn(&more("first"), "1", None), one.task());
    assert_eq!(office.tasks(), 2);
}

#[test]
fn an_edit_forks_and_leaves_the_original_alone() {
    let office = Office::new(100_000);
    let task = office.turn(&[user("hi")], "hello", None);
    let long = [
        user("hi"),
        assistant("hello"),
        user("a"),
        assistant("b"),
        user("c"),
    ];
    office.turn(&long[..3], "b", None);
    office.turn(&long, "d", None);
    let edited = [
        user("hi"),
        assistant("hello"),
        user("other"),
        assistant("way"),
        user("on"),
    ];
    let fork = office.turn(&edited, "so", None);
    assert_ne!(fork, task);
    assert_eq!(office.shows(task), ["hi", "hello", "a", "b", "c", "d"]);
    assert_eq!(
        office.shows(fork),
        ["hi", "hello", "other", "way", "on", "so"]
    );
    // The original can still go on.
    let mut on = long.to_vec();
    on.extend([assistant("d"), user("e")]);
    assert_eq!(office.turn(&on, "f", None), task);
}

#[test]
fn a_named_task_is_rewound_instead() {
    let office = Office::new(100_000);
    let name = || Some(Name::Given("mine".to_owned()));
    let task = office.turn(&[user("hi")], "hello", name());
    office.turn(&[user("hi"), assistant("hello"), user("a")], "b", name());
    let edited = [user("hi"), assistant("hello"), user("other")];
    assert_eq!(office.turn(&edited, "way", name()), task);
    assert_eq!(office.shows(task), ["hi", "hello", "other", "way"]);
    assert_eq!(office.tasks(), 1);
    // While something is under way in it, it is not.
    let mut on = edited.to_vec();
    on.extend([assistant("way"), user("on")]);
    let (_busy, _) = office.ask(&on, name());
    let again = [user("hi"), assistant("hello"), user("third")];
    assert_ne!(office.turn(&again, "x", name()), task);
}

#[test]
fn the_clients_version_of_a_reply_counts() {
    let office = Office::new(100_000);
    let task = office.turn(&[user("hi")], "hello, said at length", None);
    let on = [user("hi"), assistant("hello"), user("go on")];
    assert_eq!(office.turn(&on, "well", None), task);
    assert_eq!(office.shows(task), ["hi", "hello", "go on", "well"]);
    assert_eq!(office.tasks(), 1);
}

#[test]
fn equal_openings_of_other_sessions_models_and_tools_are_other_tasks() {
    let office = Office::new(100_000);
    let session = |id: &str| Some(Name::Session(id.to_owned()));
    let one = office.turn(&[user("hi")], "hello", session("one"));
    let two = office.turn(&[user("hi")], "hello", session("two"));
    assert_ne!(one, two);
    // A request for a title has the same words, no tools, and the same session.
    let tools = json!([{"type": "function", "function": {"name": "ls", "parameters": {}}}]);
    let body = json!({"model": "m", "messages": [user("hi")], "tools": tools});
    let call = office.call(Wire::Chat, &body, session("one"));
    let with_tools = office
        .desk
        .take(&call)
        .expect("it is taken")
        .exchange
        .task();
    assert_ne!(with_tools, one);
    // Once the model has said something, a session may go on under another id.
    let on = [user("hi"), assistant("hello"), user("more")];
    assert_eq!(office.turn(&on, "yes", session("two")), two);
    let mut on = on.to_vec();
    on.extend([assistant("yes"), user("and more")]);
    assert_eq!(office.turn(&on, "yes", session("three")), two);
}

#[test]
fn a_task_that_ended_goes_on_as_a_fork() {
    let office = Office::new(100_000);
    let task = office.turn(&[user("hi")], "hello", None);
    office.desk.release(task);
    let contexts = office.desk.contexts();
    contexts
        .finish(task, &infold_store::Outcome::Completed)
        .expect("it ends");
    let on = [user("hi"), assistant("hello"), user("more")];
    let fork = office.turn(&on, "yes", None);
    assert_ne!(fork, task);
    assert_eq!(office.shows(fork), ["hi", "hello", "more", "yes"]);
}

/// A conversation of so many turns, each of about so many words.
fn long(turns: usize, words: usize) -> Vec<Value> {
    let mut all = Vec::new();
    for turn in 0..turns {
        all.push(user(&format!("question {turn} {}", "word ".repeat(words))));
        all.push(assistant(&format!(
            "answer {turn} {}",
            "word ".repeat(words)
        )));
    }
    all
}

#[test]
fn what_is_too_long_is_folded_and_the_rest_stays_byte_for_byte() {
    let mut office = Office::new(4_000);
    let mut history = Vec::new();
    let mut before: Option<Value> = None;
    let (mut folds, mut stable) = (0, 0);
    for turn in 0..40 {
        history.push(user(&format!("question {turn} {}", "word ".repeat(60))));
        let mut messages = vec![system("be brief")];
        messages.extend(history.clone());
        let (mut exchange, sent) = office.ask(&messages, None);
        let sent_messages = sent["messages"].as_array().expect("a list").clone();
        assert_eq!(sent_messages[0], system("be brief"));
        assert_eq!(sent_messages[1], history[0], "the first request stays");
        assert_eq!(sent_messages.last(), history.last());
        let size = sent.to_string().len();
        assert!(size < 4_000 * 5, "{size} bytes in a window of 4,000 tokens");
        if let Some(before) = &before {
            let before = before["messages"].as_array().expect("a list");
            match sent_messages.starts_with(before) {
                true => stable += 1,
                false => folds += 1,
            }
        }
        before = Some(sent);
        let answer = format!("answer {turn} {}", "word ".repeat(60));
        exchange.record(reply(&answer)).expect("it is recorded");
        history.push(assistant(&answer));
        if turn == 25 {
            office.restart();
        }
    }
    assert_eq!(office.tasks(), 1);
    assert!(folds >= 1, "it was folded");
    assert!(
        stable > 5 * folds,
        "{stable} requests went on from the one before, {folds} did not"
    );
}

#[test]
fn below_the_threshold_nothing_is_touched() {
    let office = Office::new(100_000);
    let odd = br#"{ "model":"m" ,"messages" : [ {"role":"user","content":"caf\u00e9 \ud83d"} , {"role":"assistant","content":"x","n":1.0}
,{"content":"go","role":"user"} ] , "temperature":1.0}"#;
    let call = Call {
        body: Body::Held(Bytes::from_static(odd)),
        ..office.call(Wire::Chat, &json!({}), None)
    };
    let taken = office.desk.take(&call).expect("it is taken");
    assert_eq!(bytes(&call.body, &taken.outgoing), odd);
}

#[test]
fn a_long_history_that_nobody_knows_is_folded_at_once() {
    let office = Office::new(4_000);
    let mut messages = long(60, 60);
    messages.push(user("now?"));
    let (exchange, sent) = office.ask(&messages, None);
    assert!(sent.to_string().len() < 20_000);
    assert_eq!(sent["messages"][0], messages[0]);
    let headers = exchange.headers();
    let value = |name: &str| {
        headers
            .iter()
            .find(|(its, _)| *its == name)
            .map(|(_, value)| value.clone())
    };
    assert_ne!(value("x-infold-folds").as_deref(), Some("0"));
    let number = |name: &str| {
        value(name)
            .and_then(|value| value.parse::<u64>().ok())
            .unwrap_or(0)
    };
    assert!(number("x-infold-tokens-before") > 2 * number("x-infold-tokens-after"));
}

#[test]
fn what_a_provider_finds_too_long_is_folded_harder() {
    let office = Office::new(100_000);
    let mut messages = long(60, 60);
    messages.push(user("now?"));
    let body = json!({"model": "m", "messages": messages});
    let call = office.call(Wire::Chat, &body, None);
    let mut taken = office.desk.take(&call).expect("it is taken");
    assert_eq!(taken.outgoing.len(), call.body.len());
    let trouble = infold_wire::Trouble::TooLong {
        tokens: Some(9_000),
        limit: Some(4_096),
    };
    let again = taken
        .exchange
        .refused(&call, &trouble)
        .expect("it can be folded");
    let again = again.expect("there is something to fold");
    assert!(again.len() < 20_000, "{}", again.len());
    // The window is remembered.
    let (_, sent) = office.ask(
        &[&messages[..], &[assistant("yes"), user("more?")]].concat(),
        None,
    );
    assert!(sent.to_string().len() < 20_000);
}

#[test]
fn what_was_rewound_or_forked_keeps_the_folds_before_it() {
    let office = Office::new(4_000);
    let mut history = long(60, 60);
    history.push(user("now?"));
    let task = office.turn(&history, "yes", None);
    history.extend([assistant("yes"), user("and now?")]);
    assert_eq!(office.turn(&history, "still", None), task);
    // The last question is put differently: what was summarised stays summarised.
    let (_, before) = office.ask(
        &[&history[..], &[assistant("still"), user("a")]].concat(),
        None,
    );
    let mut edited = history.clone();
    edited.extend([assistant("still"), user("b")]);
    let (exchange, sent) = office.ask(&edited, None);
    let fork = exchange.task();
    assert_ne!(fork, task);
    let count = |sent: &Value| sent["messages"].as_array().map_or(0, Vec::len);
    assert_eq!(count(&before), count(&sent));
    assert_eq!(
        before["messages"][1], sent["messages"][1],
        "the same summary"
    );
}

#[test]
fn responses_that_the_provider_keeps_are_recorded_in_order() {
    let office = Office::new(100_000);
    let say = |text: &str, previous: Option<&str>| {
        let mut body = json!({"model": "m", "input": text});
        if let Some(previous) = previous {
            body["previous_response_id"] = previous.into();
        }
        let call = office.call(Wire::Responses, &body, None);
        let taken = office.desk.take(&call).expect("it is taken");
        assert_eq!(
            bytes(&call.body, &taken.outgoing),
            body.to_string().as_bytes()
        );
        taken.exchange
    };
    let item = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let answer = |text: &str, id: &str| Reply {
        messages: vec![item(text).to_string().into_bytes()],
        id: Some(id.to_owned()),
        ..reply("")
    };
    let mut first = say("hi", None);
    first
        .record(answer("hello", "resp_1"))
        .expect("it is recorded");
    let mut second = say("more", Some("resp_1"));
    assert_eq!(second.task(), first.task());
    second
        .record(answer("yes", "resp_2"))
        .expect("it is recorded");
    // Another way on from the first.
    let mut other = say("other", Some("resp_1"));
    assert_ne!(other.task(), first.task());
    other
        .record(answer("no", "resp_3"))
        .expect("it is recorded");
    let third = say("on", Some("resp_2"));
    assert_eq!(third.task(), first.task());
    // Where the beginning is not known, a task of its own begins.
    let unknown = say("x", Some("resp_9"));
    assert!(![first.task(), other.task()].contains(&unknown.task()));
}

#[test]
fn where_tools_leave_no_room_all_else_is_folded() {
    let office = Office::new(4_000);
    let mut messages = long(40, 30);
    messages.push(user("now?"));
    // Instructions and tools take almost all of the window.
    let system = system(&"rule ".repeat(3_300));
    let all = [&[system.clone()][..], &messages].concat();
    let (_, sent) = office.ask(&all, None);
    let sent = sent["messages"].as_array().cloned().unwrap_or_default();
    assert_eq!(sent[0], system);
    assert_eq!(sent[1], messages[0]);
    assert_eq!(sent.last(), messages.last());
    assert!(sent.len() < 12, "{} messages", sent.len());
}

#[test]
fn a_conversation_that_is_had_again_is_one_task_each_time() {
    let office = Office::new(100_000);
    // The model says the same each time, as it does where nothing is left to chance.
    let mut tasks = Vec::new();
    for name in ["one", "two", "three"] {
        let name = || Some(Name::Given(name.to_owned()));
        let mut history = Vec::new();
        for turn in 0..5 {
            history.push(user(&format!("question {turn}")));
            let answer = format!("answer {turn}");
            tasks.push(office.turn(&history, &answer, name()));
            history.push(assistant(&answer));
        }
    }
    tasks.dedup();
    assert_eq!(tasks.len(), 3);
    assert_eq!(office.tasks(), 3);
}

#[test]
fn a_summary_is_written_in_the_form_of_the_request() {
    let office = Office::new(100_000);
    let task = office.turn(&[user("hi")], "hello", None);
    let on = [
        user("hi"),
        assistant("hello"),
        user("more"),
        assistant("yes"),
        user("x"),
        assistant("y"),
    ];
    office.turn(&on[..3], "yes", None);
    office.turn(&on[..5], "y", None);
    let span = infold_log::Span::new(
        infold_log::Seq::new(3).unwrap(),
        infold_log::Seq::new(4).unwrap(),
    );
    let folded = office.desk.with(task, |writer| {
        writer.condense(span.unwrap(), "said yes").map(drop)
    });
    folded.unwrap().unwrap();
    // The same conversation goes on with another API.
    let content = |message: &Value| {
        let role = if message["role"] == "user" {
            "user"
        } else {
            "model"
        };
        json!({"role": role, "parts": [{"text": message["content"]}]})
    };
    let mut contents: Vec<Value> = on.iter().map(content).collect();
    contents.push(json!({"role": "user", "parts": [{"text": "and now?"}]}));
    let call = office.call(Wire::Gemini, &json!({"contents": contents}), None);
    let taken = office.desk.take(&call).expect("it is taken");
    assert_eq!(taken.exchange.task(), task);
    let sent: Value = serde_json::from_slice(&bytes(&call.body, &taken.outgoing)).unwrap();
    let sent = sent["contents"].as_array().unwrap();
    assert!(sent.len() < contents.len());
    assert!(
        sent.iter().all(|content| content["parts"].is_array()),
        "{sent:?}"
    );
}
