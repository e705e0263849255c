//! A model on loopback that says one sentence on every API, to prove that an agent's request arrives.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use infold_wire::{Reply, TokenUsage, Wire};
use serde_json::{Value, json};

/// Its only answer.
pub const SENTENCE: &str = "Infold is between us.";

/// A server that answers as long as the process lives.
pub struct ScriptedModel {
    /// Where it listens.
    pub url: String,
}

/// No request of a proof is larger.
const MAX_BODY_BYTES: u64 = 64 << 20;

impl ScriptedModel {
    /// Starts it on a free port.
    pub fn start() -> std::io::Result<ScriptedModel> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let url = format!("http://{}", listener.local_addr()?);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    // A client that goes away is none of our business.
                    let _ = answer(stream);
                });
            }
        });
        Ok(ScriptedModel { url })
    }
}

/// Answers one request and closes the connection.
fn answer(stream: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let (mut length, mut is_chunked) = (0, false);
    loop {
        let mut header = String::new();
        if reader.read_line(&mut header)? == 0 || header.trim().is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or_default();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().unwrap_or(0),
            "transfer-encoding" => is_chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let mut body = Vec::new();
    if is_chunked {
        read_chunks(&mut reader, &mut body)?;
    } else {
        reader.by_ref().take(length).read_to_end(&mut body)?;
    }
    let (status, kind, out) = respond(&method, &path, &body);
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        out.len()
    );
    let mut stream = reader.into_inner();
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(&out)?;
    }
    stream.flush()
}

fn read_chunks(reader: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = line.trim().split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || body.len() as u64 + size > MAX_BODY_BYTES {
            return Ok(());
        }
        reader.by_ref().take(size).read_to_end(body)?;
        reader.read_line(&mut String::new())?;
    }
}

/// Returns status, media type and body.
fn respond(method: &str, path: &str, body: &[u8]) -> (u16, &'static str, Vec<u8>) {
    const JSON: &str = "application/json";
    let request: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let bare = path.split('?').next().unwrap_or_default();
    let Some(wire) = wire(bare).filter(|_| method == "POST") else {
        let (status, found) = match bare {
            _ if bare.ends_with("/count_tokens") => (200, json!({"input_tokens": 10})),
            _ if bare.ends_with(":countTokens") => (200, json!({"totalTokens": 10})),
            _ if bare.ends_with("/models") => {
                (200, json!({"object": "list", "data": [], "models": []}))
            }
            "/" => (200, json!({})),
            _ => (
                404,
                json!({"error": {"message": "there is only a scripted model here", "type": "not_found_error"}}),
            ),
        };
        return (status, JSON, found.to_string().into_bytes());
    };
    let message = match wire {
        Wire::Chat | Wire::Ollama => json!({"role": "assistant", "content": SENTENCE}),
        Wire::Responses => json!({"type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": SENTENCE, "annotations": []}]}),
        Wire::Anthropic => {
            json!({"role": "assistant", "content": [{"type": "text", "text": SENTENCE}]})
        }
        Wire::Gemini => json!({"role": "model", "parts": [{"text": SENTENCE}]}),
    };
    let said = Reply {
        messages: vec![message.to_string().into_bytes()],
        usage: Some(TokenUsage {
            input: 10,
            output: 5,
            ..TokenUsage::default()
        }),
        model: request["model"].as_str().map(str::to_owned),
        ..Reply::default()
    };
    let streams = match wire {
        Wire::Gemini => bare.ends_with(":streamGenerateContent"),
        // Ollama streams unless told otherwise.
        Wire::Ollama => request["stream"] != json!(false),
        _ => request["stream"] == json!(true),
    };
    if !streams {
        return (200, JSON, infold_translate::write_reply(wire, &said));
    }
    let kind = if wire == Wire::Ollama {
        "application/x-ndjson"
    } else {
        "text/event-stream"
    };
    (
        200,
        kind,
        infold_translate::stream_reply(wire, &said, 20).concat(),
    )
}

fn wire(path: &str) -> Option<Wire> {
    let ends = |ending: &str| path.ends_with(ending);
    Some(match path {
        _ if ends("/chat/completions") => Wire::Chat,
        _ if ends("/responses") => Wire::Responses,
        _ if ends("/messages") => Wire::Anthropic,
        _ if ends("/api/chat") => Wire::Ollama,
        _ if ends(":generateContent") || ends(":streamGenerateContent") => Wire::Gemini,
        _ => return None,
    })
}
