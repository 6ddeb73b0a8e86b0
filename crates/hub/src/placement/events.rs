//! Events that tell what happened to decisions.

use std::sync::Arc;

use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta1::{Placement, PlacementDecision},
    limits::MAX_SCORE_NOTE,
    reasons::placement as reasons,
};
use ocm_runtime::{
    Context,
    error::chain,
    events::{EventRecorder, NewEvent},
};
use tokio::sync::Semaphore;
use tracing::warn;

use super::{apply::Done, facts::Name};

/// How many placements are told of at a time: decisions go first, and the API server has only so much time.
const AT_A_TIME: usize = 4;

/// Tells what was done, in the background. Events that cannot be written are lost, and those that wait when the hub ends.
#[derive(Clone, Debug)]
pub(super) struct Teller {
    context: Context,
    recorder: EventRecorder,
    turns: Arc<Semaphore>,
}

impl Teller {
    pub(super) fn new(context: &Context, recorder: EventRecorder) -> Self {
        Self { context: context.clone(), recorder, turns: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Tells it once those before it are told.
    pub(super) fn tell(&self, placement: Arc<Placement>, done: Vec<Done>, scores: &[(Name, i64)]) {
        // Put into words here and now: many may wait, and the scores of a large fleet are large.
        let told: Vec<_> = done.into_iter().flat_map(|done| happenings(&placement, done, scores)).collect();
        if told.is_empty() {
            return;
        }
        let Self { recorder, turns, .. } = self.clone();
        self.context.spawn(async move {
            let _turn = turns.acquire().await;
            for (happening, action, decision) in told {
                let namespace = placement.namespace().unwrap_or_default();
                let told =
                    recorder.record_related(&namespace, placement.as_ref(), happening, action, decision.as_ref());
                if let Err(error) = told.await {
                    warn!(error = %chain(&error), "an event is lost");
                }
            }
        });
    }
}

/// What is told, its action, and the decision that it is about.
type Told = (NewEvent, &'static str, Arc<PlacementDecision>);

fn happenings(placement: &Placement, done: Done, scores: &[(Name, i64)]) -> Vec<Told> {
    let tell = |reason, action, decision: &Arc<PlacementDecision>, note| -> Told {
        (NewEvent { type_: "Normal", reason, note }, action, decision.clone())
    };
    let note = |decision: &PlacementDecision, verb: &str| {
        format!("Placement {} has {verb} PlacementDecision {}", placement.name_any(), decision.name_any())
    };
    match done {
        Done::Created(made) => {
            vec![tell(reasons::DECISION_CREATE, reasons::DECISION_CREATED, &made, note(&made, "a new"))]
        }
        Done::Deleted(gone) => {
            vec![tell(reasons::DECISION_DELETE, reasons::DECISION_DELETED, &gone, note(&gone, "no longer"))]
        }
        Done::Listed(changed) => {
            let mut told =
                vec![tell(reasons::DECISION_UPDATE, reasons::DECISION_UPDATED, &changed, note(&changed, "a changed"))];
            if !scores.is_empty() {
                told.push(tell(reasons::SCORE_UPDATE, reasons::SCORE_UPDATED, &changed, score_note(scores)));
            }
            told
        }
    }
}

/// Each cluster with its score, as long as there is room.
fn score_note(scores: &[(Name, i64)]) -> String {
    let mut note = String::new();
    for (name, score) in scores {
        let entry = format!("{name}:{score} ");
        if note.len() + entry.len() > MAX_SCORE_NOTE {
            note.push_str("......");
            break;
        }
        note.push_str(&entry);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_lists_scores_as_long_as_there_is_room() {
        let scores = |count: usize| (0..count).map(|index| (format!("c{index:05}").into(), 100)).collect::<Vec<_>>();
        assert_eq!(score_note(&scores(2)), "c00000:100 c00001:100 ");
        let long = score_note(&scores(1000));
        assert!(long.len() <= 1006 && long.ends_with("c00089:100 ......"), "{long}");
    }

    #[test]
    fn a_list_of_clusters_comes_with_scores_if_there_are_any() {
        let placement = Placement::new("ns", "p", <_>::default());
        let listed = Done::Listed(Arc::new(PlacementDecision::new("ns", "p-decision-1")));
        let reasons = |scores: &[(Name, i64)]| -> Vec<_> {
            happenings(&placement, listed.clone(), scores)
                .into_iter()
                .map(|(told, action, _)| (told.reason, action))
                .collect()
        };
        assert_eq!(reasons(&[]), [("DecisionUpdate", "DecisionUpdated")]);
        let both = [("DecisionUpdate", "DecisionUpdated"), ("ScoreUpdate", "ScoreUpdated")];
        assert_eq!(reasons(&[("c".into(), 1)]), both);
    }
}
