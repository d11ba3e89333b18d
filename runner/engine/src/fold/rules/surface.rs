//! Rules of surface nodes.

use crate::event::{Body, Event, SurfaceOp, ToolResult};
use crate::fold::{Fold, Node, Rule};
use crate::surface::SurfacePlan;

pub(super) fn is_node(body: &Body) -> bool {
    matches!(
        body,
        Body::UserMessage(_) | Body::AssistantMessage(_) | Body::ToolResult(_)
    )
}

/// What the node does to the surface, if it may.
pub(super) fn plan(fold: &Fold, event: &Event) -> Result<SurfacePlan, Rule> {
    let op = event
        .surface_op
        .ok_or(Rule::NodeNeeds { what: "surfaceOp" })?;
    let sources = event.source_event_seqs.as_deref();
    match (&event.body, op) {
        (Body::UserMessage(_), SurfaceOp::Append) if sources.is_some() => {
            return Err(Rule::NodeNeeds {
                what: "no sources: it comes from outside",
            });
        }
        (Body::UserMessage(_), SurfaceOp::Append) => {}
        (Body::AssistantMessage(_), SurfaceOp::Replace { .. }) => return Err(Rule::CannotReplace),
        _ if sources.is_none() => {
            return Err(Rule::NodeNeeds {
                what: "sourceEventSeqs",
            });
        }
        _ => {}
    }
    let plan = fold
        .surface
        .plan(event.seq, op, sources.unwrap_or_default())?;
    if matches!(event.body, Body::UserMessage(_)) {
        whole_pairs(fold, fold.surface.covered(&plan))?;
    }
    Ok(plan)
}

/// Calls and their results leave the surface together or not at all.
fn whole_pairs(fold: &Fold, covered: &[u64]) -> Result<(), Rule> {
    let nodes = || covered.iter().filter_map(|seq| fold.nodes.get(seq));
    let mut called: Vec<&str> = Vec::new();
    let mut answered: Vec<&str> = Vec::new();
    for node in nodes() {
        match node {
            Node::Answer { calls, .. } => {
                called.extend(calls.iter().map(|call| call.call_id.as_str()))
            }
            Node::Result { place, .. } => answered.push(&place.call_id),
            Node::User { .. } => {}
        }
    }
    called.sort_unstable();
    answered.sort_unstable();
    let torn = called
        .iter()
        .find(|id| !answered.contains(id))
        .or_else(|| answered.iter().find(|id| !called.contains(id)));
    match torn {
        Some(call_id) => Err(Rule::TearsPair {
            call_id: (*call_id).to_owned(),
        }),
        None => Ok(()),
    }
}

/// A result's replacement stands for exactly that result and changes nothing but its content.
pub(super) fn result_replacement(
    fold: &Fold,
    event: &Event,
    data: &ToolResult,
) -> Result<(), Rule> {
    if fold.open_step().is_some_and(|step| !step.is_settled()) {
        return Err(Rule::Awaiting);
    }
    let Some(SurfaceOp::Replace { start, end }) = event.surface_op else {
        return Err(Rule::ResultReplacement);
    };
    let own = matches!(fold.nodes.get(&start), Some(Node::Result { place, .. })
        if place.call_id == data.call_id && place.turn == data.turn && place.step == data.step);
    if start == end && own && data.content.is_some() {
        Ok(())
    } else {
        Err(Rule::ResultReplacement)
    }
}
