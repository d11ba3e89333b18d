//! A session's log as a stranger reads it: lines of JSON on disk, checked here by code that shares
//! nothing with the writer.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::world::World;

pub struct Log {
    pub path: PathBuf,
    pub lines: Vec<String>,
    pub records: Vec<Value>,
}

/// Folders of the sessions of a world, oldest first.
pub fn sessions(world: &World) -> Vec<PathBuf> {
    let root = world.home.join(".curfew/sessions");
    let Ok(entries) = std::fs::read_dir(&root) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    // A folder takes its name only when its header is durable.
    let named = |path: &PathBuf| {
        !path
            .file_name()
            .unwrap()
            .as_encoded_bytes()
            .starts_with(b".")
    };
    found.retain(|path| named(path) && path.join("log.jsonl").exists());
    found.sort();
    found
}

impl Log {
    /// The only session of a world.
    pub fn only(world: &World) -> Self {
        let found = sessions(world);
        assert_eq!(found.len(), 1, "{found:?}");
        Log::read(&found[0].join("log.jsonl"))
    }

    /// Complete lines only: a writer may be at work.
    pub fn read(path: &Path) -> Self {
        let text = String::from_utf8(std::fs::read(path).unwrap()).expect("a log is UTF-8");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines: Vec<String> = whole.lines().map(str::to_owned).collect();
        let records = lines
            .iter()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"));
        Log {
            path: path.to_path_buf(),
            records: records.collect(),
            lines,
        }
    }

    pub fn id(&self) -> &str {
        self.records[0]["id"].as_str().expect("a header has an id")
    }

    pub fn types(&self) -> Vec<&str> {
        self.records
            .iter()
            .map(|record| record["type"].as_str().unwrap())
            .collect()
    }

    /// `data` of every event of a type.
    pub fn all(&self, kind: &str) -> Vec<&Value> {
        self.records
            .iter()
            .filter(|record| record["type"] == kind)
            .map(|r| &r["data"])
            .collect()
    }

    pub fn last(&self, kind: &str) -> &Value {
        self.all(kind)
            .pop()
            .unwrap_or_else(|| panic!("no {kind} in {:#?}", self.types()))
    }

    /// Whether these types stand in the log in this order, with others between.
    pub fn has_in_order(&self, wanted: &[&str]) -> bool {
        let mut types = self.types().into_iter();
        wanted.iter().all(|kind| types.any(|found| found == *kind))
    }

    /// The chain, the numbering, and the pairing of calls and results.
    pub fn assert_whole(&self) {
        let mut previous = "0".repeat(64);
        for (index, line) in self.lines.iter().enumerate() {
            let (body, tail) = line
                .rsplit_once(",\"hash\":\"")
                .expect("hash is the last member");
            let hash = tail.strip_suffix("\"}").expect("hash is the last member");
            let bytes = format!("{previous}{body}");
            let computed: String = Sha256::digest(bytes.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(
                hash,
                computed,
                "line {} of {}",
                index + 1,
                self.path.display()
            );
            previous = hash.to_owned();
        }
        let first = self.records[0]["seedLength"].as_u64().unwrap_or(0);
        for (wanted, record) in (first..).zip(&self.records[1..]) {
            assert_eq!(record["seq"].as_u64(), Some(wanted), "{record}");
        }
        let ids = |events: Vec<&Value>| -> Vec<String> {
            events
                .iter()
                .map(|data| data["callId"].as_str().unwrap().to_owned())
                .collect()
        };
        let answers = self.all("assistant/message");
        let asked = answers
            .iter()
            .flat_map(|answer| answer["calls"].as_array().into_iter().flatten());
        let asked = ids(asked.collect());
        let unique: BTreeSet<&String> = asked.iter().collect();
        assert_eq!(
            unique.len(),
            asked.len(),
            "call ids are unique in a session"
        );
        assert_eq!(
            asked,
            ids(self.all("tool/result")),
            "every call has one result, in model order"
        );
        for (kind, wanted) in [("tool/call", "started"), ("tool/completed", "ended")] {
            let mut seen = BTreeSet::new();
            let once = ids(self.all(kind))
                .into_iter()
                .all(|id| unique.contains(&id) && seen.insert(id));
            assert!(once, "a call {wanted} that was not asked for, or twice");
        }
    }

    /// The arguments of a call as the model wrote them: its pieces, joined.
    pub fn arguments(&self, index: u64) -> String {
        let chunks = self.all("assistant/chunk");
        let mine = chunks
            .iter()
            .filter(|chunk| chunk["block"]["kind"] == "call" && chunk["block"]["index"] == index);
        mine.map(|chunk| chunk["text"].as_str().unwrap()).collect()
    }
}

/// What is wrong with the calls and results of a request, by the rules of the API: every call is
/// answered by the tool messages right after it, once each, and no answer is without its call.
pub fn unpaired(messages: &[Value]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        let id = |value: &Value| value.as_str().unwrap_or("").to_owned();
        if message["role"] == "tool" {
            let answered = id(&message["tool_call_id"]);
            match open.iter().position(|call| *call == answered) {
                Some(at) => drop(open.remove(at)),
                None => broken.push(format!("an answer without a call: {answered}")),
            }
            continue;
        }
        broken.extend(
            open.drain(..)
                .map(|call| format!("a call without an answer: {call}")),
        );
        let calls = message["tool_calls"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        open.extend(calls.iter().map(|call| id(&call["id"])));
        if calls.is_empty() && message["content"].as_str().is_none_or(str::is_empty) {
            broken.push(format!("an empty message: {message}"));
        }
    }
    broken.extend(
        open.into_iter()
            .map(|call| format!("a call without an answer: {call}")),
    );
    broken
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::unpaired;

    #[test]
    fn unpaired_messages_are_found() {
        let call = |id: &str| json!({"role": "assistant", "tool_calls": [{"id": id}]});
        let answer = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": ""});
        let user = json!({"role": "user", "content": "go on"});
        assert!(unpaired(&[call("a"), answer("a"), user.clone()]).is_empty());
        assert_eq!(unpaired(&[call("a"), user.clone()]).len(), 1);
        assert_eq!(unpaired(&[call("a")]).len(), 1);
        assert_eq!(unpaired(&[answer("a"), user.clone()]).len(), 1);
        assert_eq!(unpaired(&[call("a"), answer("a"), answer("a")]).len(), 1);
        assert_eq!(
            unpaired(&[json!({"role": "assistant", "content": ""})]).len(),
            1
        );
    }
}
