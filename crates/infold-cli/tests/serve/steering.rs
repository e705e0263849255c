//! A person steers a task while a server holds it, and the conversation continues.

use infold_testkit::{Script, Server, hash};
use infold_wire::Wire;

use crate::House;
use crate::talk::Talk;

/// A conversation of some turns that the server holds.
fn held(house: &House, name: Option<&str>) -> Talk {
    let mut talk = Talk::new(Wire::Chat, true);
    talk.name = name.map(str::to_owned);
    for turn in 1..=5 {
        talk.turn(
            house.port,
            &format!("question {turn}{}", " of many".repeat(20)),
        );
    }
    talk
}

/// Returns the last request to the provider.
fn sent(server: &Server) -> String {
    server.last_call().expect("it was asked").text()
}

/// Asks, and returns whether the request was passed on unchanged.
fn untouched(server: &Server, house: &House, talk: &mut Talk, text: &str) -> bool {
    talk.say(text);
    let asked = hash(&talk.body());
    let answer = talk.ask(house.port).expect("an answer");
    talk.hear(&answer).expect("a reply");
    server.last_call().expect("it was asked").hash == asked
}

#[test]
fn folds_made_and_undone_by_a_person_show_in_the_next_request() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    let mut talk = held(&house, None);
    let task = talk.task();
    let id = task.to_string();
    assert_eq!(house.ok(&["log", &id]).len(), 10);
    house.ok(&["view", &id]);
    let condensed = house.fed(
        &["condense", &id, "3..6", "--text", "-"],
        b"they spoke of the weather",
    );
    assert_eq!(condensed.code, Some(0), "{}", condensed.err);
    assert!(!untouched(
        &server,
        &house,
        &mut talk,
        "what did we speak of?"
    ));
    let body = sent(&server);
    assert!(body.contains("they spoke of the weather"), "{body}");
    assert!(
        !body.contains("question 2 ") && !body.contains("question 3 "),
        "{body}"
    );
    assert!(
        body.contains("question 1 ") && body.contains("question 4 "),
        "{body}"
    );
    assert_eq!(talk.task(), task);
    house.ok(&["pin", &id, "1"]);
    assert!(!untouched(&server, &house, &mut talk, "and then?"));
    house.ok(&["undo", &id]);
    house.ok(&["undo", &id]);
    assert!(untouched(&server, &house, &mut talk, "and in full?"));
    house.ok(&["truncate", &id, "--fraction", "0.3"]);
    assert!(
        !untouched(&server, &house, &mut talk, "and in short?"),
        "{}",
        sent(&server)
    );
    let folds = house.ok(&["folds", &id]);
    assert_eq!(folds.len(), 2, "{folds:?}");
    assert_eq!(talk.task(), task);
    assert_eq!(house.said(task), talk.said());
    assert_eq!(house.tasks().len(), 1);
    house.is_well(task);
}

#[test]
fn after_a_rewind_the_client_goes_on_with_what_it_has() {
    for name in [None, Some("mine")] {
        let server = Server::start(Script::new());
        let house = House::open(&server);
        let mut talk = held(&house, name);
        let task = talk.task();
        house.ok(&["rewind", &task.to_string(), "--to", "4"]);
        assert_eq!(house.said(task).len(), 4);
        assert!(untouched(&server, &house, &mut talk, "where were we?"));
        // A conversation with a name stays in its task; without one the user's state of the task stays as it is.
        assert_eq!(talk.task() == task, name.is_some());
        assert_eq!(house.said(talk.task()), talk.said());
        if name.is_none() {
            assert_eq!(house.said(task).len(), 4);
        }
        let now = talk.task();
        assert!(untouched(&server, &house, &mut talk, "and on"));
        assert_eq!(talk.task(), now);
        assert_eq!(house.said(now), talk.said());
        house.is_well(task);
        house.is_well(now);
    }
}

#[test]
fn what_a_person_adds_stays_apart_from_what_the_client_says() {
    for adds in ["push", "ask"] {
        let server = Server::start(Script::new());
        let house = House::open(&server);
        let mut talk = held(&house, None);
        let task = talk.task();
        let id = task.to_string();
        let config = format!(
            "llm:\n  provider: mine\n  mine:\n    provider: openai\n    model: scripted\n    base_url: {}/v1\n",
            server.url()
        );
        let dir = house.root.path().join(".config/infold");
        std::fs::create_dir_all(&dir).expect("a directory");
        std::fs::write(dir.join("config.yaml"), config).expect("a file");
        let ran = match adds {
            "push" => house.fed(
                &["task", "push", &id],
                br#"{"role":"user","content":"by the way"}"#,
            ),
            _ => house.run(&["ask", &id, "by the way", "--provider", "mine"]),
        };
        assert_eq!(ran.code, Some(0), "{adds}: {}", ran.err);
        let mut with_more = talk.said();
        with_more.push("by the way".to_owned());
        assert!(house.said(task).starts_with(&with_more), "{adds}");
        assert!(untouched(&server, &house, &mut talk, "as I said"), "{adds}");
        assert_eq!(house.said(talk.task()), talk.said(), "{adds}");
        assert!(house.said(task).starts_with(&with_more), "{adds}");
        let now = talk.task();
        assert!(untouched(&server, &house, &mut talk, "and on"), "{adds}");
        assert_eq!(talk.task(), now, "{adds}");
        house.is_well(task);
        house.is_well(now);
    }
}

#[test]
fn a_person_and_many_requests_do_not_get_in_each_others_way() {
    let server = Server::start(Script::new());
    let house = House::open(&server);
    let mut talk = held(&house, None);
    let task = talk.task();
    let id = task.to_string();
    let mut steps = 0;
    std::thread::scope(|scope| {
        let steering = scope.spawn(|| {
            for _ in 0..6 {
                for args in [&["pin", &id, "1"][..], &["undo", &id], &["view", &id]] {
                    let ran = house.run(args);
                    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.err);
                    steps += 1;
                }
            }
        });
        let mut turn = 0;
        while !steering.is_finished() {
            turn += 1;
            talk.turn(house.port, &format!("meanwhile, {turn}"));
        }
    });
    println!("{steps} steps, {} messages", talk.history.len());
    assert_eq!(talk.task(), task);
    assert_eq!(house.said(task), talk.said());
    assert_eq!(house.counted("infold_failures_total"), 0);
    house.is_well(task);
}
