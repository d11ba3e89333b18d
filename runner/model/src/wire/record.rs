//! A recorded response: one JSON object a line, in the order of the requests.

use std::collections::BTreeMap;

use curfew_engine::event::ModelFailure;
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Record {
    /// Which body was answered: a help for people, never compared.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub request: Option<RecordedRequest>,
    /// Absent when no response came; then `failure` says what did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub headers: BTreeMap<String, String>,
    /// The bytes of the body, if they are text.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub body: Option<String>,
    /// The bytes of the body in hexadecimal, if they are not.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub body_hex: Option<String>,
    /// Lengths of the pieces the body came in; what is left over comes as one more piece.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub chunks: Vec<usize>,
    #[serde(skip_serializing_if = "is_clean", default)]
    pub end: RecordedEnd,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<ModelFailure>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RecordedRequest {
    pub sha256: String,
    pub bytes: u64,
}

/// What came after the last byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RecordedEnd {
    #[default]
    Clean,
    /// The connection broke.
    Reset,
    /// Nothing, and no close either.
    Silent,
}

fn is_clean(end: &RecordedEnd) -> bool {
    *end == RecordedEnd::Clean
}

impl Record {
    pub(crate) fn parse(line: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(line)
    }

    pub(crate) fn to_line(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self).map(|line| line + "\n")
    }

    pub(crate) fn set_body(&mut self, bytes: Vec<u8>) {
        match String::from_utf8(bytes) {
            Ok(text) => self.body = Some(text),
            Err(fault) => {
                self.body_hex = Some(
                    fault
                        .as_bytes()
                        .iter()
                        .map(|byte| format!("{byte:02x}"))
                        .collect(),
                );
            }
        }
    }

    /// The bytes of the body; `None` when its hexadecimal is not.
    pub(crate) fn body_bytes(&self) -> Option<Vec<u8>> {
        match (&self.body, &self.body_hex) {
            (Some(text), _) => Some(text.clone().into_bytes()),
            (None, Some(hex)) => from_hex(hex),
            (None, None) => Some(Vec::new()),
        }
    }
}

fn from_hex(hex: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = hex.chars().map(|c| c.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(
        digits
            .chunks_exact(2)
            .map(|pair| (pair[0] * 16 + pair[1]) as u8)
            .collect(),
    )
}
