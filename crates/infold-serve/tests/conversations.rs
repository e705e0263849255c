//! The assignment of requests to tasks: stories of clients, without a server.

mod office;

use bytes::Bytes;
use infold_log::{Seq, Span};
use infold_serve::{ConversationName, IncomingBody, ModelCall};
use infold_store::{Outcome, Status};
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
    three.record(reply("third")).expect("it is recorded");
    // As long as none of them is continued, they are one conversation.
    let task = one.task();
    assert_eq!((two.task(), three.task(), office.tasks()), (task, task, 1));
    assert_eq!(office.shows(task), ["hi", "third"]);
    drop((one, two, three));
    // Each continues separately.
    let more = |text: &str| [user("hi"), assistant(text), user("more")];
    assert_eq!(office.turn(&more("second"), "2", None), task);
    let other = office.turn(&more("first"), "1", None);
    assert_ne!(other, task);
    assert_eq!(office.shows(task), ["hi", "second", "more", "2"]);
    assert_eq!(office.shows(other), ["hi", "first", "more", "1"]);
    assert_eq!(office.tasks(), 2);
}

#[test]
fn retries_and_questions_put_differently_are_one_task() {
    let mut office = Office::new(100_000);
    let said = [user("hi"), assistant("hello"), user("a")];
    let task = office.turn(&said[..1], "hello", None);
    // The client did not get the answer, and repeats the request: the model gives another answer each time.
    for answer in ["b", "c", "d"] {
        assert_eq!(office.turn(&said, answer, None), task);
        assert_eq!(office.shows(task).last().map(String::as_str), Some(answer));
        office.restart();
    }
    // It continues from the answer that it got, which need not be the last.
    let on = [&said[..], &[assistant("c"), user("e")]].concat();
    assert_eq!(office.ask(&on, None).0.task(), task);
    // That message was not answered, and is rephrased.
    let other = [&said[..], &[assistant("c"), user("f")]].concat();
    assert_eq!(office.turn(&other, "g", None), task);
    assert_eq!(office.shows(task), ["hi", "hello", "a", "c", "f", "g"]);
    assert_eq!(office.tasks(), 1);
    // Two continuations that are both used are two.
    let second = [&said[..], &[assistant("d"), user("h")]].concat();
    let fork = office.turn(&second, "i", None);
    assert_ne!(fork, task);
    assert_eq!(office.shows(fork), ["hi", "hello", "a", "d", "h", "i"]);
}

#[test]
fn an_answer_that_comes_when_the_conversation_went_on_is_kept_beside_it() {
    let office = Office::new(100_000);
    let (mut slow, _) = office.ask(&[user("hi")], None);
    let task = office.turn(&[user("hi")], "hello", None);
    let on = [user("hi"), assistant("hello"), user("a")];
    assert_eq!(office.turn(&on, "b", None), task);
    slow.record(reply("good day")).expect("it is recorded");
    assert_eq!((slow.task(), office.tasks()), (task, 1));
    drop(slow);
    assert_eq!(office.shows(task), ["hi", "hello", "a", "b"]);
    let on = [user("hi"), assistant("good day"), user("x")];
    let fork = office.turn(&on, "y", None);
    assert_ne!(fork, task);
    assert_eq!(office.shows(fork), ["hi", "good day", "x", "y"]);
}

#[test]
fn what_is_sent_last_is_shown_whatever_was_folded_since() {
    let mut office = Office::new(4_000);
    let mut history = long(60, 60);
    history.push(user("now?"));
    let task = office.turn(&history, "yes", None);
    // Every earlier state is sent again: one that ends within the fold, and one that ends with it.
    for end in (1..60).map(|turn| 2 * turn + 1) {
        let again = &history[..end];
        let (exchange, sent) = office.ask(again, None);
        let sent = sent["messages"].as_array().expect("a list").clone();
        assert_eq!(sent.last(), again.last(), "of {end} messages");
        drop(exchange);
        if end % 20 == 1 {
            office.restart();
        }
    }
    // A person folds all there is, and the client asks again.
    let name = Some(ConversationName::Given(task.to_string()));
    history.extend([assistant("yes"), user("and now?")]);
    drop(office.ask(&history, name.clone()));
    let folded = office.conversations.with(task, |writer| {
        let last = writer.log().state().last_seq().expect("messages");
        let all = Span::new(Seq::FIRST, last).expect("in order");
        writer.condense(all, "It went well.").map(drop)
    });
    folded.expect("it can be had").expect("it can be folded");
    let (_, sent) = office.ask(&history, name);
    let sent = sent["messages"].as_array().expect("a list").clone();
    assert_eq!(sent.last(), history.last());
}

#[test]
fn odd_messages_are_kept_and_what_stands_around_them_is_folded() {
    let odd = [
        (Wire::Chat, json!({"role": "assistant"})),
        (Wire::Chat, json!({"role": "user", "content": null})),
        (
            Wire::Chat,
            json!({"role": "user", "content": {"text": "x"}}),
        ),
        (
            Wire::Chat,
            json!({"role": "tool", "tool_call_id": "c", "content": null}),
        ),
        (
            Wire::Chat,
            json!({"role": "tool", "tool_call_id": "c", "content": {"x": 1}}),
        ),
        (Wire::Anthropic, json!({"role": "assistant"})),
        (
            Wire::Responses,
            json!({"type": "message", "role": "assistant"}),
        ),
        (Wire::Gemini, json!({"role": "model"})),
        (Wire::Gemini, json!({"role": "model", "parts": null})),
        (Wire::Gemini, json!({"role": "user"})),
        (Wire::Ollama, json!({"role": "assistant"})),
    ];
    for (wire, odd) in odd {
        let office = Office::new(3_000);
        let list = match wire {
            Wire::Responses => "input",
            Wire::Gemini => "contents",
            _ => "messages",
        };
        let say = |role: &str, text: &str| match wire {
            Wire::Gemini => {
                let role = if role == "assistant" { "model" } else { role };
                json!({"role": role, "parts": [{"text": text}]})
            }
            _ => json!({"role": role, "content": text}),
        };
        let mut history = Vec::new();
        let mut folds = 0;
        for turn in 0..30 {
            history.push(say(
                "user",
                &format!("question {turn} {}", "word ".repeat(60)),
            ));
            let mut body = json!({"model": "m", "max_tokens": 50});
            body[list] = history.clone().into();
            let call = office.call(wire, &body, None);
            let taken = office.conversations.accept(&call);
            let taken = taken.unwrap_or_else(|error| panic!("{odd} on {wire}: {error}"));
            let sent: Value =
                serde_json::from_slice(&bytes(&call.body, &taken.outgoing)).expect("JSON");
            let sent = sent[list].as_array().cloned().unwrap_or_default();
            assert_eq!(sent.last(), history.last(), "{odd} on {wire}");
            folds += usize::from(sent.len() < history.len());
            history.push(say(
                "assistant",
                &format!("answer {turn} {}", "word ".repeat(60)),
            ));
            if turn % 10 == 5 {
                history.push(odd.clone());
            }
        }
        assert!(folds > 5, "{odd} on {wire}: {folds}");
        assert_eq!(office.tasks(), 1, "{odd} on {wire}");
    }
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
    // The original can still be continued.
    let mut on = long.to_vec();
    on.extend([assistant("d"), user("e")]);
    assert_eq!(office.turn(&on, "f", None), task);
}

#[test]
fn a_fork_is_of_the_model_and_the_wire_that_asked_for_it() {
    let office = Office::new(100_000);
    let said = [user("hi"), assistant("hello"), user("a")];
    let task = office.turn(&said, "b", None);
    // The last question is put to another model, on another wire.
    let other = [user("hi"), assistant("hello"), user("other")];
    let body = json!({"model": "n", "max_tokens": 9, "messages": other});
    let call = office.call(Wire::Anthropic, &body, None);
    let taken = office.conversations.accept(&call).expect("it is taken");
    let fork = taken.exchange.task();
    let told = |task| {
        let log = office
            .conversations
            .contexts()
            .read(task)
            .expect("it can be read");
        let metadata = infold_store::Metadata::read(log.dir()).expect("it is there");
        let model = metadata.model.clone().unwrap_or_default();
        (log.parent().is_some(), model, metadata.form(), log.wire())
    };
    let chat = (false, "m".to_owned(), Wire::Chat, Wire::Chat);
    let anthropic = (true, "n".to_owned(), Wire::Anthropic, Wire::Anthropic);
    assert_eq!((told(task), told(fork)), (chat, anthropic));
    assert_eq!(office.shows(fork), ["hi", "hello", "other"]);
}

#[test]
fn a_named_task_is_rewound_instead() {
    let office = Office::new(100_000);
    let name = || Some(ConversationName::Given("mine".to_owned()));
    let task = office.turn(&[user("hi")], "hello", name());
    office.turn(&[user("hi"), assistant("hello"), user("a")], "b", name());
    let edited = [user("hi"), assistant("hello"), user("other")];
    assert_eq!(office.turn(&edited, "way", name()), task);
    assert_eq!(office.shows(task), ["hi", "hello", "other", "way"]);
    assert_eq!(office.tasks(), 1);
    // While an exchange is in progress in it, it is not.
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
    let session = |id: &str| Some(ConversationName::Session(id.to_owned()));
    let one = office.turn(&[user("hi")], "hello", session("one"));
    let two = office.turn(&[user("hi")], "hello", session("two"));
    assert_ne!(one, two);
    // A request for a title has the same words, no tools, and the same session.
    let tools = json!([{"type": "function", "function": {"name": "ls", "parameters": {}}}]);
    let body = json!({"model": "m", "messages": [user("hi")], "tools": tools});
    let call = office.call(Wire::Chat, &body, session("one"));
    let with_tools = office
        .conversations
        .accept(&call)
        .expect("it is taken")
        .exchange
        .task();
    assert_ne!(with_tools, one);
    // Once the model has replied, a session may continue under another id.
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
    office.conversations.release(task);
    let contexts = office.conversations.contexts();
    contexts.finish(task, &Outcome::Completed).expect("it ends");
    let on = [user("hi"), assistant("hello"), user("more")];
    let fork = office.turn(&on, "yes", None);
    assert_ne!(fork, task);
    assert_eq!(office.shows(fork), ["hi", "hello", "more", "yes"]);
}

#[test]
fn a_task_that_ended_idle_goes_on_as_itself() {
    let office = Office::new(100_000);
    let task = office.turn(&[user("hi")], "hello", None);
    office.conversations.release(task);
    let contexts = office.conversations.contexts();
    assert!(contexts.end_idle(task).expect("it ends"));
    let status = || {
        contexts
            .row(task)
            .expect("a registry")
            .expect("a row")
            .status
    };
    assert_eq!(status(), Status::Completed);
    let on = [user("hi"), assistant("hello"), user("more")];
    assert_eq!(office.turn(&on, "yes", None), task);
    assert_eq!(office.shows(task), ["hi", "hello", "more", "yes"]);
    assert_eq!(status(), Status::Running);
    assert_eq!(office.tasks(), 1);
}

#[test]
fn a_fork_of_a_task_that_ended_keeps_the_folds_before_it() {
    let office = Office::new(100_000);
    let mut history = Vec::new();
    let mut task = None;
    for turn in 0..3 {
        history.push(user(&format!("question {turn}")));
        task = Some(office.turn(&history, "well", None));
        history.push(assistant("well"));
    }
    let task = task.expect("there is one");
    let first = Span::new(Seq::FIRST, Seq::new(4).expect("a number")).expect("a span");
    let folded = office
        .conversations
        .with(task, |writer| writer.condense(first, "They said well."));
    folded.expect("it can be had").expect("it can be folded");
    office.conversations.release(task);
    let ended = office
        .conversations
        .contexts()
        .finish(task, &Outcome::Completed);
    ended.expect("it ends");
    history.truncate(4);
    history.push(user("something else"));
    let fork = office.turn(&history, "yes", None);
    assert_ne!(fork, task);
    let shown = office.shows(fork);
    assert!(shown.concat().contains("They said well."), "{shown:?}");
    assert_eq!(office.holds(fork).len(), 6);
}

/// A conversation of `turns` turns, each of about `words` words.
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
            if sent_messages.starts_with(before) {
                stable += 1
            } else {
                folds += 1
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
    let call = ModelCall {
        body: IncomingBody::InMemory(Bytes::from_static(odd)),
        ..office.call(Wire::Chat, &json!({}), None)
    };
    let taken = office.conversations.accept(&call).expect("it is taken");
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
    let mut taken = office.conversations.accept(&call).expect("it is taken");
    assert_eq!(taken.outgoing.len(), call.body.len());
    let trouble = infold_wire::ProviderError::TooLong {
        tokens: Some(9_000),
        limit: Some(4_096),
    };
    let again = taken
        .exchange
        .adapt(&call, &trouble)
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
fn folds_that_did_not_help_are_taken_back() {
    // A conversation that was not folded before, and one that was.
    for window in [100_000, 4_000] {
        let office = Office::new(window);
        let mut messages = long(60, 60);
        messages.push(user("now?"));
        let task = office.turn(&messages, "yes", None);
        messages.extend([assistant("yes"), user("and now?")]);
        let body = json!({"model": "m", "messages": messages});
        let call = office.call(Wire::Chat, &body, None);
        let mut taken = office.conversations.accept(&call).expect("it is taken");
        let before = office.shows(task);
        let mut sent = Vec::new();
        for limit in [3_000, 2_000, 1_000] {
            let trouble = infold_wire::ProviderError::TooLong {
                tokens: None,
                limit: Some(limit),
            };
            let again = taken.exchange.adapt(&call, &trouble);
            sent.extend(again.expect("it can be folded").map(|it| it.len()));
        }
        assert!(
            !sent.is_empty() && sent.is_sorted_by(|a, b| a > b),
            "{sent:?}"
        );
        assert_ne!(office.shows(task), before);
        taken
            .exchange
            .fail("still too long")
            .expect("it is recorded");
        assert_eq!(office.shows(task), before, "a window of {window}");
        let events = office.holds(task);
        assert_eq!(events.last().map(String::as_str), Some("and now?"));
        // And the next request is sent as if nothing had been.
        let (_, next) = office.ask(&messages, None);
        let said: Vec<Value> = next["messages"].as_array().cloned().unwrap_or_default();
        assert_eq!(said.len(), before.len(), "a window of {window}");
    }
}

#[test]
fn what_was_folded_in_vain_is_opened_and_nothing_else() {
    for (by_hand, accepted, stays) in [
        (false, false, false),
        (true, false, true),
        (false, true, true),
    ] {
        let office = Office::new(128_000);
        let mut messages = long(60, 60);
        messages.push(user("now?"));
        let body = json!({"model": "m", "messages": messages});
        let call = office.call(Wire::Chat, &body, None);
        let mut exchange = office
            .conversations
            .accept(&call)
            .expect("it is taken")
            .exchange;
        let task = exchange.task();
        let noted = office
            .conversations
            .with(task, |writer| writer.note("before"));
        noted.expect("it can be had").expect("it can be noted");
        for limit in [4_096, 2_048] {
            let trouble = infold_wire::ProviderError::TooLong {
                tokens: Some(9_000),
                limit: Some(limit),
            };
            let again = exchange.adapt(&call, &trouble);
            again.expect("it can be folded").expect("it is shorter");
        }
        if by_hand {
            let noted = office
                .conversations
                .with(task, |writer| writer.note("by hand"));
            noted.expect("it can be had").expect("it can be noted");
        }
        if accepted {
            exchange.accepted();
        }
        exchange.fail("in vain").expect("it is recorded");
        let shown = office.shows(task).join(" ");
        let folded = shown.contains("folded away") || shown.contains("hidden");
        assert_eq!(folded, stays, "{shown}");
        assert!(shown.contains("before"), "{shown}");
        assert_eq!(shown.contains("by hand"), by_hand, "{shown}");
    }
}

#[test]
fn what_was_rewound_or_forked_keeps_the_folds_before_it() {
    let office = Office::new(4_000);
    let mut history = long(60, 60);
    history.push(user("now?"));
    let task = office.turn(&history, "yes", None);
    history.extend([assistant("yes"), user("and now?")]);
    assert_eq!(office.turn(&history, "still", None), task);
    // The last question is rephrased: the summary stays.
    let asked = [&history[..], &[assistant("still"), user("a")]].concat();
    let (mut answered, before) = office.ask(&asked, None);
    answered.record(reply("b")).expect("it is recorded");
    drop(answered);
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
        let taken = office.conversations.accept(&call).expect("it is taken");
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
    // If the beginning is unknown, a new task begins.
    let unknown = say("x", Some("resp_9"));
    assert!(![first.task(), other.task()].contains(&unknown.task()));
}

#[test]
fn where_tools_leave_no_room_all_else_is_folded() {
    let office = Office::new(4_000);
    let mut messages = long(40, 30);
    messages.push(user("now?"));
    // Instructions and tools take almost all of the window, or all of it.
    for words in [3_300, 3_700, 4_100] {
        let system = system(&"rule ".repeat(words));
        let all = [&[system.clone()][..], &messages].concat();
        let (_, sent) = office.ask(&all, None);
        let sent = sent["messages"].as_array().cloned().unwrap_or_default();
        assert_eq!(sent[0], system);
        assert_eq!(sent[1], messages[0]);
        assert_eq!(sent.last(), messages.last());
        let most = if words < 3_400 { 12 } else { 4 };
        assert!(sent.len() <= most, "{words}: {} messages", sent.len());
    }
}

#[test]
fn long_instructions_do_not_make_every_turn_change_what_was_sent_before() {
    // The share of the instructions in a window of 32,000 tokens.
    for (share, most) in [(50, 14), (60, 10), (70, 16), (80, 45)] {
        let office = Office::new(32_000);
        let system = system(&"rule ".repeat(320 * share));
        let mut history = vec![system];
        let mut before: Vec<Value> = Vec::new();
        let mut broken = 0;
        for turn in 0..100 {
            history.push(user(&format!("question {turn} {}", "word ".repeat(60))));
            let (mut exchange, sent) = office.ask(&history, None);
            let sent = sent["messages"].as_array().cloned().unwrap_or_default();
            broken += usize::from(!sent.starts_with(&before));
            before = sent;
            let answer = format!("answer {turn} {}", "word ".repeat(120));
            exchange.record(reply(&answer)).expect("it is recorded");
            history.push(assistant(&answer));
        }
        assert!(broken <= most, "{share} %: {broken} of 100 turns");
    }
}

#[test]
fn a_conversation_that_is_had_again_is_one_task_each_time() {
    let office = Office::new(100_000);
    // The model replies the same each time, as with temperature zero.
    let mut tasks = Vec::new();
    for name in ["one", "two", "three"] {
        let name = || Some(ConversationName::Given(name.to_owned()));
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
    let folded = office.conversations.with(task, |writer| {
        writer.condense(span.unwrap(), "said yes").map(drop)
    });
    folded.unwrap().unwrap();
    // The same conversation continues with another API.
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
    let taken = office.conversations.accept(&call).expect("it is taken");
    assert_eq!(taken.exchange.task(), task);
    let sent: Value = serde_json::from_slice(&bytes(&call.body, &taken.outgoing)).unwrap();
    let sent = sent["contents"].as_array().unwrap();
    assert!(sent.len() < contents.len());
    assert!(
        sent.iter().all(|content| content["parts"].is_array()),
        "{sent:?}"
    );
}

#[test]
fn a_window_that_the_client_chose_has_room_for_the_reply_it_asks_for() {
    let office = Office::new(100_000);
    for reply in [-1, 1_000, 4_096, 50_000] {
        let options = json!({"num_ctx": 4_096, "num_predict": reply});
        let body = json!({"model": "m", "messages": long(1, 10), "options": options});
        let call = office.call(Wire::Ollama, &body, None);
        let taken = office.conversations.accept(&call);
        assert!(taken.is_ok(), "{reply}: {:?}", taken.err());
    }
}

#[test]
fn a_lost_index_is_filled_again_and_names_are_found() {
    let mut office = Office::new(100_000);
    let session = || Some(ConversationName::Session("mine".to_owned()));
    let other = office.turn(&[user("hi")], "hello", session());
    let name = || Some(ConversationName::Given("mine".to_owned()));
    let task = office.turn(&[user("hi")], "hello", name());
    let on = [user("hi"), assistant("hello"), user("a")];
    assert_eq!(office.turn(&on, "b", name()), task);
    office.restart_without_index();
    // A task with a name is rewound, and no other task with the same words is taken for it.
    let edited = [user("hi"), assistant("hello"), user("other")];
    assert_eq!(office.turn(&edited, "way", name()), task);
    assert_eq!(office.shows(task), ["hi", "hello", "other", "way"]);
    assert_eq!(office.turn(&on, "c", session()), other);
    assert_eq!(office.tasks(), 2);
}

#[test]
fn pieces_that_say_nothing_alone_count_among_others() {
    let office = Office::new(100_000);
    let content = |role: &str, text: &str| json!({"role": role, "parts": [{"text": text}]});
    let mut contents = vec![
        content("user", "hi"),
        content("model", "one"),
        content("model", "\n\n"),
        content("model", "two"),
        content("user", "go on"),
    ];
    let take = |contents: &[Value], name| {
        let call = office.call(Wire::Gemini, &json!({"contents": contents}), name);
        office
            .conversations
            .accept(&call)
            .expect("it is taken")
            .exchange
    };
    let task = take(&contents, None).task();
    // The id of a task means it if it begins as the conversation does: the log is asked, not the index.
    contents.extend([content("model", "well"), content("user", "more")]);
    let named = take(&contents, Some(ConversationName::Given(task.to_string())));
    assert_eq!(named.task(), task);
    // No message is recorded twice.
    let log = office
        .conversations
        .contexts()
        .read(task)
        .expect("it can be read");
    assert_eq!(log.state().last_seq().map(|seq| seq.get()), Some(7));
}

#[test]
fn a_text_instead_of_messages_goes_with_what_was_noted() {
    let office = Office::new(100_000);
    let call = office.call(
        Wire::Responses,
        &json!({"model": "m", "input": "hi", "store": true}),
        None,
    );
    let take = || office.conversations.accept(&call).expect("it is taken");
    let task = take().exchange.task();
    let noted = office
        .conversations
        .with(task, |writer| writer.note("mind the gap").map(drop));
    noted.expect("it is held").expect("it is noted");
    let again = take();
    assert_eq!(again.exchange.task(), task);
    let sent: Value = serde_json::from_slice(&bytes(&call.body, &again.outgoing)).unwrap();
    assert_eq!(sent["store"], true);
    let input = sent["input"].to_string();
    assert!(
        input.contains("hi") && input.contains("mind the gap"),
        "{input}"
    );
}

#[test]
fn a_session_whose_name_is_too_long_has_none() {
    let office = Office::new(100_000);
    for (length, kept) in [(200, true), (201, false), (1 << 20, false)] {
        let session = "s".repeat(length);
        let body = json!({"model": "m", "input": [user("hi")], "prompt_cache_key": session});
        let call = office.call(Wire::Responses, &body, None);
        let task = office
            .conversations
            .accept(&call)
            .expect("it is taken")
            .exchange
            .task();
        let dir = office
            .conversations
            .contexts()
            .place(task)
            .expect("it is there");
        let metadata = infold_store::Metadata::read(&dir).expect("it can be read");
        assert_eq!(metadata.task_id.is_some(), kept, "{length}");
    }
}
