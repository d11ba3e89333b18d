//! One rule for each path, and which of them stay.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::expand::Places;
use crate::profile::{Origin, Row, RowKind};
use crate::{Mode, PolicyError};

/// Private or emptied in every call, whatever a profile says; what stands in them must be placed.
const AREAS: [&str; 4] = ["/dev/shm", "/run", "/tmp", "/var/tmp"];

/// What a rule makes of its path, the stronger later: at one path the last one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Closed,
    Read,
    Private,
    Write,
    Mask,
}

/// Whose rule it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Shows what a call needs; never narrows and never opens what somebody meant.
    Help,
    /// Typed or configured.
    Operator(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub kind: Kind,
    pub source: Source,
}

#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: BTreeMap<PathBuf, Rule>,
}

impl Rules {
    /// Paths of one kind, sorted.
    pub fn of(&self, kind: Kind) -> Vec<PathBuf> {
        let rules = self.rules.iter().filter(|(_, rule)| rule.kind == kind);
        rules.map(|(path, _)| path.clone()).collect()
    }

    pub fn mask_row(&mut self, row: &Row, places: &Places<'_>) {
        let kind = match row.kind {
            RowKind::Closed => Kind::Closed,
            RowKind::Plain | RowKind::Private => Kind::Mask,
        };
        for expanded in places.expand(&row.path) {
            self.mask(expanded.path, kind, places);
        }
    }

    /// Nothing where there is nothing to hide.
    pub fn mask(&mut self, path: PathBuf, kind: Kind, places: &Places<'_>) {
        let Some(real) = places.look(&path) else {
            return;
        };
        // $HISTFILE may be /dev/null; what is made up for a call holds no secret of the host.
        let made_up = ["/dev", "/proc"].iter().any(|area| real.starts_with(area));
        if made_up || real.parent().is_none() {
            return;
        }
        // A link to a secret is one more name of it; both are covered.
        for path in [real, super::expand::tidy(&path)] {
            let source = Source::Operator("mask");
            self.add(path, Rule { kind, source });
        }
    }

    pub fn read_row(&mut self, row: &Row, places: &Places<'_>) -> Result<(), PolicyError> {
        for expanded in places.expand(&row.path) {
            if places.look(&expanded.path).is_none() {
                missing(row, "read", &expanded.path)?;
                continue;
            }
            let source = match row.origin {
                Origin::Operator if !expanded.derived => Source::Operator("read"),
                Origin::Operator | Origin::BuiltIn => Source::Help,
            };
            self.add(
                expanded.path,
                Rule {
                    kind: Kind::Read,
                    source,
                },
            );
        }
        Ok(())
    }

    pub fn write_row(
        &mut self,
        row: &Row,
        mode: Mode,
        places: &Places<'_>,
    ) -> Result<(), PolicyError> {
        for expanded in places.expand(&row.path) {
            if row.kind == RowKind::Private {
                if mode != Mode::ReadOnly {
                    self.add(
                        expanded.path,
                        Rule {
                            kind: Kind::Private,
                            source: Source::Help,
                        },
                    );
                }
                continue;
            }
            let Some(real) = places.look(&expanded.path) else {
                missing(row, "write", &expanded.path)?;
                continue;
            };
            if mode == Mode::ReadOnly {
                self.grant("write", real, Kind::Read)?;
            } else {
                super::refuse_broad("write", &real, places.breadth(&real))?;
                self.grant("write", real, Kind::Write)?;
            }
        }
        Ok(())
    }

    /// A root somebody named. A mask at the very path is a contradiction they should hear of.
    pub fn grant(
        &mut self,
        what: &'static str,
        real: PathBuf,
        kind: Kind,
    ) -> Result<(), PolicyError> {
        if self
            .rules
            .get(&real)
            .is_some_and(|rule| rule.kind == Kind::Mask)
        {
            let text =
                "is masked by the profile; name something below it, or another profile".to_owned();
            return Err(PolicyError::Refused {
                what,
                path: real,
                text,
            });
        }
        self.add(
            real,
            Rule {
                kind,
                source: Source::Operator(what),
            },
        );
        Ok(())
    }

    fn add(&mut self, path: PathBuf, rule: Rule) {
        // Help does not open a closed directory; somebody who names it does.
        let helps_into = |old: &Rule| old.kind == Kind::Closed && rule.source == Source::Help;
        match self.rules.get(&path) {
            Some(old) if old.kind > rule.kind || helps_into(old) => {}
            Some(old) if old.kind == rule.kind && old.source != Source::Help => {}
            _ => {
                self.rules.insert(path, rule);
            }
        }
    }

    /// Drops what changes nothing and what nobody meant. Parents come before what is below them.
    pub fn settle(&mut self, places: &Places<'_>) -> Result<(), PolicyError> {
        let paths: Vec<PathBuf> = self.rules.keys().cloned().collect();
        for path in paths {
            let Some(rule) = self.rules.get(&path).copied() else {
                continue;
            };
            if !self.stays(&path, rule, places)? {
                self.rules.remove(&path);
            }
        }
        self.open_masks();
        Ok(())
    }

    fn stays(&self, path: &Path, rule: Rule, places: &Places<'_>) -> Result<bool, PolicyError> {
        let above = self.above(path);
        match (rule.kind, rule.source) {
            (Kind::Closed | Kind::Mask, _) => Ok(true),
            (Kind::Write, _) => Ok(above != Some(Kind::Write)),
            (Kind::Private, _) => Ok(matches!(above, Some(Kind::Closed | Kind::Private))),
            (Kind::Read, Source::Help) => {
                let hidden = matches!(above, Some(Kind::Closed | Kind::Private));
                Ok(hidden && self.alias(path, places).is_none())
            }
            (Kind::Read, Source::Operator(what)) => match self.alias(path, places) {
                Some(text) => Err(PolicyError::Refused {
                    what,
                    path: path.to_path_buf(),
                    text,
                }),
                None => Ok(true),
            },
        }
    }

    /// What governs the directory above `path`.
    fn above(&self, path: &Path) -> Option<Kind> {
        path.ancestors()
            .skip(1)
            .find_map(|above| self.kind_at(above))
    }

    /// What governs `path` itself.
    fn governs(&self, path: &Path) -> Option<Kind> {
        path.ancestors().find_map(|above| self.kind_at(above))
    }

    fn kind_at(&self, path: &Path) -> Option<Kind> {
        // As text: rules are asked for every directory above every path, and both are tidy.
        let area = || {
            AREAS
                .iter()
                .any(|area| path.as_os_str() == *area)
                .then_some(Kind::Closed)
        };
        self.rules.get(path).map(|rule| rule.kind).or_else(area)
    }

    /// Why a path that is a link must not be shown: what it leads to is hidden or closed on purpose.
    fn alias(&self, path: &Path, places: &Places<'_>) -> Option<String> {
        let real = places.look(path).filter(|real| real != path)?;
        let opens = |kind| {
            self.rules
                .iter()
                .any(|(other, rule)| rule.kind == kind && other.starts_with(&real))
        };
        // Help may still be dropped, so it decides nothing here.
        let meant = real.ancestors().find_map(|above| {
            let help = self
                .rules
                .get(above)
                .is_some_and(|rule| rule.source == Source::Help);
            self.kind_at(above).filter(|_| !help)
        });
        if opens(Kind::Closed) || opens(Kind::Mask) || meant == Some(Kind::Mask) {
            return Some(format!("leads to {}, which is hidden", real.display()));
        }
        // Its content is the model's: a search path must not lead there.
        (meant == Some(Kind::Write))
            .then(|| format!("leads to {}, which is writable", real.display()))
    }

    /// A masked directory in which something longer stands is a closed one.
    fn open_masks(&mut self) {
        let masks = self.of(Kind::Mask);
        for mask in masks {
            let holds = self
                .rules
                .keys()
                .any(|path| *path != mask && path.starts_with(&mask));
            match (holds, self.above(&mask)) {
                (false, _) => {}
                // Already inside an empty directory: what stands below makes its own way.
                (true, Some(Kind::Closed)) => {
                    self.rules.remove(&mask);
                }
                (true, _) => {
                    let source = Source::Operator("mask");
                    self.rules.insert(
                        mask,
                        Rule {
                            kind: Kind::Closed,
                            source,
                        },
                    );
                }
            }
        }
    }

    /// The operator's PATH without what a call could write or would not find.
    pub fn search_path(&self, places: &Places<'_>) -> Vec<PathBuf> {
        let shown = |dir: &PathBuf| {
            let real = places.look(dir).unwrap_or_else(|| dir.clone());
            let readable = |path: &Path| {
                !matches!(
                    self.governs(path),
                    Some(Kind::Write | Kind::Private | Kind::Closed | Kind::Mask)
                )
            };
            // A read rule at a link shows what the link leads to, wherever that is.
            readable(dir) && (self.kind_at(dir) == Some(Kind::Read) || readable(&real))
        };
        places.path_dirs().into_iter().filter(shown).collect()
    }
}

fn missing(row: &Row, key: &'static str, path: &Path) -> Result<(), PolicyError> {
    match row.optional {
        true => Ok(()),
        false => Err(PolicyError::MissingRoot {
            key,
            path: path.to_path_buf(),
        }),
    }
}
