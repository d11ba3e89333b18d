//! A scripted server: for each request a list of acts, played after the request was read.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub enum Act {
    Send(Vec<u8>),
    /// Waits until the client has gone.
    Hold,
    /// Waits for the test to call [`Server::go_on`].
    Pause,
    Close,
    /// Closes with a reset instead of an orderly end.
    Reset,
}

pub struct Server {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
    paused: Arc<Notify>,
    on: Arc<Notify>,
    gone: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Answers the first request with the first script, and so on; then closes every connection.
    pub async fn start(scripts: Vec<Vec<Act>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (paused, on, gone) = (
            Arc::<Notify>::default(),
            Arc::<Notify>::default(),
            Arc::<Notify>::default(),
        );
        let stage = Stage {
            scripts: scripts.into_iter().collect(),
            requests: requests.clone(),
            paused: paused.clone(),
            on: on.clone(),
            gone: gone.clone(),
        };
        let counted = connections.clone();
        let task = tokio::spawn(async move {
            let mut stage = stage;
            while let Ok((peer, _)) = listener.accept().await {
                *counted.lock().unwrap() += 1;
                stage.serve(peer).await;
            }
        });
        Self {
            address,
            requests,
            connections,
            paused,
            on,
            gone,
            task,
        }
    }

    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Heads and bodies of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    pub async fn wait_until_paused(&self) {
        self.paused.notified().await;
    }

    pub fn go_on(&self) {
        self.on.notify_one();
    }

    /// Returns when a held client has closed its connection.
    pub async fn wait_until_gone(&self) {
        self.gone.notified().await;
    }
}

struct Stage {
    scripts: std::collections::VecDeque<Vec<Act>>,
    requests: Arc<Mutex<Vec<String>>>,
    paused: Arc<Notify>,
    on: Arc<Notify>,
    gone: Arc<Notify>,
}

impl Stage {
    async fn serve(&mut self, mut peer: TcpStream) {
        peer.set_nodelay(true).unwrap();
        while let Some(request) = read_request(&mut peer).await {
            self.requests.lock().unwrap().push(request);
            let Some(acts) = self.scripts.pop_front() else {
                return;
            };
            for act in acts {
                match act {
                    Act::Send(bytes) => {
                        // A client that has seen enough may be gone.
                        if peer.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                    Act::Hold => {
                        let mut rest = [0; 64];
                        while peer.read(&mut rest).await.is_ok_and(|got| got > 0) {}
                        self.gone.notify_one();
                        return;
                    }
                    Act::Pause => {
                        self.paused.notify_one();
                        self.on.notified().await;
                    }
                    Act::Close => return,
                    Act::Reset => {
                        peer.set_zero_linger().unwrap();
                        return;
                    }
                }
            }
        }
    }
}

async fn read_request(peer: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut piece = [0; 65536];
    loop {
        let head = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = head {
            let text = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length: usize = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                return Some(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        match peer.read(&mut piece).await {
            Ok(got) if got > 0 => bytes.extend_from_slice(&piece[..got]),
            _ => return None,
        }
    }
}

/// A response whose body ends with the connection.
pub fn until_close(status: &str, content_type: &str, body: &[u8]) -> Vec<Act> {
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    vec![
        Act::Send(head.into_bytes()),
        Act::Send(body.to_vec()),
        Act::Close,
    ]
}

/// A response with a length, after which the connection stays open.
pub fn whole(status: &str, headers: &str, body: &str) -> Vec<Act> {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    vec![
        Act::Send(head.into_bytes()),
        Act::Send(body.as_bytes().to_vec()),
    ]
}

pub fn sse_head() -> Act {
    Act::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec(),
    )
}

/// One piece of a chunked body.
pub fn chunk(bytes: &[u8]) -> Act {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    Act::Send(framed)
}

pub fn last_chunk() -> Act {
    Act::Send(b"0\r\n\r\n".to_vec())
}

/// A stream as most servers send it, in pieces of its events.
pub fn streamed(body: &str) -> Vec<Act> {
    let mut acts = vec![sse_head()];
    acts.extend(
        body.split_inclusive("\n\n")
            .map(|event| chunk(event.as_bytes())),
    );
    acts.push(last_chunk());
    acts
}
