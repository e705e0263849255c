//! A full disk while a question or a reply is recorded.

use std::process::Command;

use infold_testkit::{Script, Server, Step};
use infold_wire::Wire;

use crate::{Ran, World, is_valid, messages};

impl World {
    /// Runs a command that cannot make a file larger than `blocks` blocks of 512 bytes.
    fn limited(&self, lane: &str, blocks: u32, args: &[&str]) -> Ran {
        let mut command = Command::new("/bin/sh");
        self.prepare(lane, &mut command);
        let script = r#"trap '' XFSZ; ulimit -f "$0"; exec "$@""#;
        command.args([
            "-c",
            script,
            &blocks.to_string(),
            env!("CARGO_BIN_EXE_infold"),
        ]);
        self.ended(command.args(args).output().expect("sh runs"))
    }
}

const LIMITS: [u32; 12] = [0, 2, 8, 14, 24, 64, 72, 96, 128, 180, 256, 2048];

#[test]
fn a_reply_without_space_is_kept_whole_or_not_at_all() {
    let (mut lost, mut done, mut unasked) = (0, 0, 0);
    for blocks in LIMITS {
        for wire in [Wire::Chat, Wire::Responses] {
            let world = World::new();
            let reply = "what there is to say about it ".repeat(3000);
            let think = |text: &str| Step::think("a thought ".repeat(4000), text).in_pieces(700);
            let server = Server::start(Script::steps([think(&reply), think(&reply)]));
            world.configure("full", &server);
            let task = world.task(wire);
            let name = task.to_string();
            let question = "what is there to say? ".repeat(20);
            let ask = ["ask", &name, &question, "--window", "100000", "--json"];
            let ran = world.limited("full", blocks, &ask);
            let what = format!(
                "{} within {blocks} blocks: {}{}",
                wire.name(),
                ran.out,
                ran.err
            );
            let log = world.read(task);
            is_valid(&log);
            let kept: Vec<String> = messages(&log).into_iter().map(|(_, text)| text).collect();
            let words: Vec<&String> = kept.iter().filter(|text| !text.is_empty()).collect();
            match ran.code {
                Some(0) => {
                    done += 1;
                    assert_eq!(words, [&question, &reply], "{what}");
                }
                code => {
                    assert_eq!(code, Some(3), "{what}");
                    let error: serde_json::Value =
                        serde_json::from_str(ran.err.lines().last().unwrap_or_default())
                            .expect("an error in JSON");
                    let text = error["error"].as_str().unwrap_or_default();
                    assert!(
                        text.contains("no space left") || text.contains("tasks.db"),
                        "{what}"
                    );
                    assert!(kept.is_empty() || kept == [question.as_str()], "{what}");
                    unasked += usize::from(server.count() == 0);
                    lost += usize::from(server.count() > 0);
                    let again = world.run("full", &ask);
                    assert_eq!(again.code, Some(0), "{what}, then {}", again.err);
                    assert_eq!(again.object()["text"], reply, "{what}");
                    let kept = messages(&world.read(task));
                    let words = kept.iter().filter(|(_, text)| !text.is_empty());
                    assert_eq!(words.count(), 2, "{what}");
                }
            }
            assert!(!world.has_request(task), "{what}");
            world.run("full", &["pin", &name, "--note", "on"]);
            assert_eq!(world.problems("full", task), "", "{what}");
        }
    }
    println!("{done} were done, {lost} replies were not kept, {unasked} never asked for");
    assert!(
        done > 3 && lost > 1 && unasked > 1,
        "{done}, {lost}, {unasked}"
    );
}
