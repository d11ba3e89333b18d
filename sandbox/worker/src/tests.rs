//! The tools through the socket, as the supervisor uses them, on real files.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use curfew_cell::frame::{Channel, Rights};

use crate::protocol::{ErrorCode, Observation, Request, Response, ToolError};

/// A workspace of its own and requests to a worker in it.
pub(crate) struct Bench {
    pub dir: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    /// The real path: the temporary directory may be reached through a link.
    pub fn root(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.root().join(name)).unwrap()
    }

    /// One request to a worker on a thread of its own.
    pub fn ask(&self, request: &Request, bulk: &[&[u8]]) -> (Response, Vec<u8>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let root = self.root();
        let worker = std::thread::spawn(move || crate::serve(OwnedFd::from(theirs), &root));
        let mut channel = Channel::new(ours, Rights::Refused);
        channel.send_json(request, &[]).unwrap();
        for bytes in bulk {
            channel.send_bulk(bytes).unwrap();
        }
        let (response, _) = channel.recv_json::<Response>().unwrap();
        let bytes = match &response {
            Response::Read { bytes, .. }
            | Response::Glob { bytes, .. }
            | Response::Grep { bytes, .. }
            | Response::Manifest { bytes, .. } => *bytes,
            _ => 0,
        };
        let bulk = channel.recv_bulk(bytes, u64::MAX).unwrap();
        assert_eq!(worker.join().unwrap(), 0);
        (response, bulk)
    }

    pub fn read(&self, path: &str) -> (Observation, String) {
        let (response, text) = self.ask(&read(path, 1, 2000), &[]);
        let Response::Read { file, .. } = response else {
            panic!("{response:?}")
        };
        let observation = Observation {
            path: file.path,
            sha256: file.sha256,
            seen: file.seen,
        };
        (observation, String::from_utf8(text).unwrap())
    }

    pub fn write(&self, path: &str, content: &str, observations: Vec<Observation>) -> Response {
        let request = Request::Write {
            path: path.into(),
            bytes: content.len() as u64,
            observations,
        };
        self.ask(&request, &[content.as_bytes()]).0
    }

    pub fn edit(
        &self,
        path: &str,
        old: &str,
        new: &str,
        observations: Vec<Observation>,
    ) -> Response {
        let request = Request::Edit {
            path: path.into(),
            old_bytes: old.len() as u64,
            new_bytes: new.len() as u64,
            observations,
        };
        self.ask(&request, &[old.as_bytes(), new.as_bytes()]).0
    }

    /// Names in a directory, so that nothing is left behind unseen.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn read(path: &str, offset: u64, lines_max: u64) -> Request {
    Request::Read {
        path: path.into(),
        offset,
        lines_max,
        line_chars_max: 2000,
        bytes_max: 50_000,
    }
}

pub(crate) fn error(response: &Response) -> &ToolError {
    match response {
        Response::Error { error } => error,
        other => panic!("no error: {other:?}"),
    }
}

pub(crate) fn code(response: &Response) -> ErrorCode {
    error(response).code
}

pub(crate) fn link(to: impl AsRef<Path>, at: impl AsRef<Path>) {
    std::os::unix::fs::symlink(to, at).unwrap();
}

pub(crate) fn fifo(at: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
}

#[test]
fn read_then_edit_then_write_through_the_socket() {
    let bench = Bench::new();
    bench.put("src/a.py", "def f():\n    return 1\n");
    let (seen, text) = bench.read("src/a.py");
    assert_eq!(text, "def f():\n    return 1\n");
    let edited = bench.edit("src/a.py", "return 1", "return 2", vec![seen]);
    let Response::Edited { file, at, .. } = edited else {
        panic!("{edited:?}")
    };
    assert_eq!(
        (at, bench.text("src/a.py").as_str()),
        (2, "def f():\n    return 2\n")
    );
    let again = Observation {
        path: file.path,
        sha256: file.sha256,
        seen: file.seen,
    };
    let written = bench.write("src/a.py", "x\n", vec![again]);
    assert!(
        matches!(written, Response::Written { created: false, .. }),
        "{written:?}"
    );
    assert_eq!(bench.text("src/a.py"), "x\n");
}

#[test]
fn a_frame_that_is_no_request_is_answered_and_one_of_another_version_is_not() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let worker = std::thread::spawn(move || crate::serve(OwnedFd::from(theirs), Path::new("/")));
    let mut channel = Channel::new(ours, Rights::Refused);
    channel
        .send_raw(br#"{"v":1,"kind":"format-disk"}"#)
        .unwrap();
    let (response, _) = channel.recv_json::<Response>().unwrap();
    assert_eq!(code(&response), ErrorCode::BadRequest);
    assert_eq!(worker.join().unwrap(), 0);

    let (ours, theirs) = UnixStream::pair().unwrap();
    let worker = std::thread::spawn(move || crate::serve(OwnedFd::from(theirs), Path::new("/")));
    Channel::new(ours, Rights::Refused)
        .send_raw(br#"{"v":2,"kind":"glob"}"#)
        .unwrap();
    assert_eq!(worker.join().unwrap(), 1);
}

#[test]
fn bulk_that_does_not_come_ends_the_worker() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let worker = std::thread::spawn(move || crate::serve(OwnedFd::from(theirs), Path::new("/")));
    let mut channel = Channel::new(ours, Rights::Refused);
    let request = Request::Write {
        path: "x".into(),
        bytes: u64::MAX,
        observations: vec![],
    };
    channel.send_json(&request, &[]).unwrap();
    assert_eq!(worker.join().unwrap(), 1);
}
