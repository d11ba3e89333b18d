//! What a call changed in the workspace: the difference of two bounded manifests, made by workers.

use curfew_engine::event::{FileAccess, FileSeen, WorkspaceChanged};
use curfew_sandbox::manifest::{Manifest, diff};
use curfew_worker::protocol::{ManifestEntry, Request, Response};

use crate::cells::Cells;

/// Files a manifest lists; of a larger tree only so much is compared, and that is said.
const ENTRIES_MAX: u64 = 20_000;

/// Knows the workspace as the last write-capable call left it.
#[derive(Debug)]
pub struct Changes {
    /// Empty where no call can change anything.
    roots: Vec<String>,
    last: Option<Manifest>,
}

impl Changes {
    pub fn new(roots: Vec<String>) -> Self {
        Changes { roots, last: None }
    }

    /// Makes sure there is something to compare with.
    pub fn before(&mut self, cells: &Cells) {
        if self.last.is_none() && !self.roots.is_empty() {
            self.last = self.manifest(cells);
        }
    }

    /// What has changed since. A manifest that could not be made is a cut one.
    pub fn after(&mut self, cells: &Cells, call_id: Option<&str>) -> Option<WorkspaceChanged> {
        if self.roots.is_empty() {
            return None;
        }
        let before = self.last.take();
        let after = self.manifest(cells);
        let changes = match (&before, &after) {
            (Some(before), Some(after)) => diff(before, after),
            _ => curfew_sandbox::manifest::Changes {
                cut: true,
                ..Default::default()
            },
        };
        self.last = after;
        if changes.is_empty() && !changes.cut {
            return None;
        }
        Some(WorkspaceChanged {
            call_id: call_id.map(str::to_owned),
            created: changes.created,
            changed: changes.changed,
            removed: changes.removed,
            cut: changes.cut,
        })
    }

    /// A file tool says itself what it changed.
    pub fn wrote(&mut self, call_id: &str, files: &[FileSeen]) -> Option<WorkspaceChanged> {
        let of = |access: FileAccess| -> Vec<String> {
            files
                .iter()
                .filter(|file| file.access == access)
                .map(|file| file.path.clone())
                .collect()
        };
        let (created, changed) = (of(FileAccess::Created), of(FileAccess::Changed));
        if created.is_empty() && changed.is_empty() {
            return None;
        }
        // The next command must not be blamed for it.
        self.last = None;
        Some(WorkspaceChanged {
            call_id: Some(call_id.to_owned()),
            created,
            changed,
            removed: Vec::new(),
            cut: false,
        })
    }

    fn manifest(&self, cells: &Cells) -> Option<Manifest> {
        let request = Request::Manifest {
            roots: self.roots.clone(),
            entries_max: ENTRIES_MAX,
        };
        let (response, bulk, _) = match cells.worker(cells.number(), &request, &[]) {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(%error, "no manifest of the workspace");
                return None;
            }
        };
        let Response::Manifest { cut, .. } = response else {
            return None;
        };
        let lines = bulk
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let entries: Result<Vec<ManifestEntry>, _> = lines.map(serde_json::from_slice).collect();
        match entries {
            Ok(entries) => Some(Manifest { entries, cut }),
            Err(error) => {
                tracing::warn!(%error, "a manifest that is none");
                None
            }
        }
    }
}
