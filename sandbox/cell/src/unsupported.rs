//! The broker's face on systems where it cannot confine: every plan fails, nothing runs.

use std::convert::Infallible;
use std::os::fd::OwnedFd;

use crate::WorkerFn;
use crate::frame::Channel;
use crate::plan::Plan;
use crate::protocol::{
    Appeared, CallEnd, Denial, FromBroker, ReadyFacts, SetupFault, ToBroker, What,
};

const NOT_READY: i32 = 7;

pub fn serve(mut channel: Channel, _: WorkerFn) -> i32 {
    if let Ok((ToBroker::Plan { .. }, _)) = channel.recv_json() {
        // A supervisor that is gone needs no answer.
        return match channel.send_json(&FromBroker::Failed { fault: fault() }, &[]) {
            Ok(()) | Err(_) => NOT_READY,
        };
    }
    NOT_READY
}

/// Cannot be opened here, so what it does can be said by a value that does not exist.
pub struct InPlace {
    pub facts: ReadyFacts,
    never: Infallible,
}

impl InPlace {
    pub fn open(_: &Plan, _: WorkerFn) -> Result<InPlace, SetupFault> {
        Err(fault())
    }

    pub fn run(&mut self, _: What, _: Vec<OwnedFd>) -> Result<(CallEnd, Vec<Denial>), SetupFault> {
        match self.never {}
    }

    pub fn appeared(&self) -> Result<Appeared, SetupFault> {
        match self.never {}
    }

    pub fn leave(self) {
        match self.never {}
    }
}

pub fn run_one(_: &Plan, _: What, _: [OwnedFd; 3]) -> Result<(CallEnd, Vec<Denial>), SetupFault> {
    Err(fault())
}

fn fault() -> SetupFault {
    SetupFault {
        step: "system".to_owned(),
        path: None,
        errno: 0,
        text: "this system has no confinement that curfew can set up".to_owned(),
    }
}
