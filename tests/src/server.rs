//! A scripted model server on loopback that keeps every request as it arrived. It is the judge of
//! what was sent: not our log, and not our renderer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

/// A request as it came off the socket.
#[derive(Clone, Debug)]
pub struct Request {
    pub line: String,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Request {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a request body is JSON")
    }

    pub fn messages(&self) -> Vec<Value> {
        self.json()["messages"]
            .as_array()
            .expect("a request has messages")
            .clone()
    }
}

/// What the server does with a request.
pub enum Reply {
    /// A stream of these SSE payloads, with `[DONE]` at the end.
    Sse(Vec<Value>),
    /// A status with a body.
    Status(u16, Vec<(&'static str, String)>, String),
    /// Whatever this writes; the connection closes when it returns.
    Live(Box<dyn FnOnce(&mut TcpStream) + Send>),
}

/// Told of the first byte of each connection, by the clock.
type Notice = Option<Sender<Instant>>;

type Script = Box<dyn FnMut(usize, &Request) -> Reply + Send>;

pub struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Answers the n-th model request (from 0) with what `script` says.
    pub fn start(script: impl FnMut(usize, &Request) -> Reply + Send + 'static) -> Self {
        Server::listening(None, Box::new(script))
    }

    /// The same, and tells when the first byte of each connection was there.
    pub fn noticing(
        notice: Sender<Instant>,
        script: impl FnMut(usize, &Request) -> Reply + Send + 'static,
    ) -> Self {
        Server::listening(Some(notice), Box::new(script))
    }

    fn listening(notice: Notice, script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (kept, script) = (requests.clone(), Arc::new(Mutex::new(script)));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (kept, script, notice) = (kept.clone(), script.clone(), notice.clone());
                let stream = stream.expect("a listener of this test accepts");
                std::thread::spawn(move || {
                    if let Some(notice) = notice {
                        tell(&stream, &notice);
                    }
                    serve(stream, &kept, &script);
                });
            }
        });
        Server { port, requests }
    }

    /// Answers in order; what comes after the last answer repeats it.
    pub fn answering(answers: Vec<Vec<Value>>) -> Self {
        Server::start(move |index, _| Reply::Sse(answers[index.min(answers.len() - 1)].clone()))
    }

    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// The model requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

/// Waits for the first byte and tells when it came.
fn tell(stream: &TcpStream, notice: &Sender<Instant>) {
    let mut byte = [0];
    if stream.peek(&mut byte).is_ok_and(|count| count > 0) {
        // Nobody waits for a second connection.
        notice.send(Instant::now()).ok();
    }
}

fn serve(mut stream: TcpStream, kept: &Mutex<Vec<Request>>, script: &Mutex<Script>) {
    // A client that hung up before it asked is no request.
    let Some(request) = receive(&stream) else {
        return;
    };
    if !request.line.starts_with("POST /v1/chat/completions ") {
        let models = json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]});
        return status(&mut stream, 200, &[], &models.to_string());
    }
    let index = {
        let mut kept = kept.lock().unwrap();
        kept.push(request.clone());
        kept.len() - 1
    };
    let reply = (script.lock().unwrap())(index, &request);
    match reply {
        Reply::Sse(payloads) => {
            head(&mut stream);
            for payload in &payloads {
                data(&mut stream, payload);
            }
            send(&mut stream, b"data: [DONE]\n\n");
        }
        Reply::Status(code, headers, body) => status(&mut stream, code, &headers, &body),
        Reply::Live(act) => act(&mut stream),
    }
}

fn receive(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            text => lines.push(text.to_owned()),
        }
    }
    let length = lines.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let line = lines.remove(0);
    Some(Request {
        line,
        headers: lines,
        body,
    })
}

/// The head of a streamed answer.
pub fn head(stream: &mut TcpStream) {
    send(
        stream,
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    );
}

/// One SSE event.
pub fn data(stream: &mut TcpStream, payload: &Value) {
    send(stream, format!("data: {payload}\n\n").as_bytes());
}

/// Bytes; a client that has gone is no fault of the server.
pub fn send(stream: &mut TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).and_then(|()| stream.flush()).ok();
}

fn status(stream: &mut TcpStream, code: u16, headers: &[(&'static str, String)], body: &str) {
    let extra: String = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n{extra}connection: close\r\n\r\n"
    );
    send(stream, format!("{head}{body}").as_bytes());
}

fn chunk(delta: Value, finish: Option<&str>) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    })
}

fn usage() -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
        "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
}

/// A piece of text.
pub fn piece(text: &str) -> Value {
    chunk(json!({"content": text}), None)
}

/// The last choice of an answer.
pub fn finish(reason: &str) -> Value {
    chunk(json!({}), Some(reason))
}

/// An answer in words.
pub fn text(words: &str) -> Vec<Value> {
    let mut answer = vec![chunk(json!({"role": "assistant", "content": null}), None)];
    // Streamed in pieces that cut words.
    let letters: Vec<char> = words.chars().collect();
    answer.extend(
        letters
            .chunks(7)
            .map(|part| piece(&part.iter().collect::<String>())),
    );
    answer.extend([finish("stop"), usage()]);
    answer
}

/// An answer that calls tools: name and arguments of each, arguments in pieces.
pub fn calls(wanted: &[(&str, Value)]) -> Vec<Value> {
    let raw: Vec<(&str, String)> = wanted
        .iter()
        .map(|(name, arguments)| (*name, arguments.to_string()))
        .collect();
    let raw: Vec<(&str, &str)> = raw
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    raw_calls(&raw)
}

/// The same with arguments that need not be JSON.
pub fn raw_calls(wanted: &[(&str, &str)]) -> Vec<Value> {
    let mut answer = vec![chunk(json!({"role": "assistant", "content": null}), None)];
    for (index, (name, arguments)) in wanted.iter().enumerate() {
        let first = json!({"index": index, "id": format!("model_{index}"), "type": "function",
            "function": {"name": name, "arguments": ""}});
        answer.push(chunk(json!({"tool_calls": [first]}), None));
        let letters: Vec<char> = arguments.chars().collect();
        for part in letters.chunks(11) {
            let part: String = part.iter().collect();
            let more = json!({"index": index, "function": {"arguments": part}});
            answer.push(chunk(json!({"tool_calls": [more]}), None));
        }
    }
    answer.extend([finish("tool_calls"), usage()]);
    answer
}
