//! Keeps the messages of a work short enough for one request: the API server refuses objects of more than about 1.5 MB.
//!
//! Types, statuses and reasons stay, and so do short messages.

use ocm_api::work::v1::ManifestCondition;

/// The most bytes of all messages about the objects of a work.
pub(super) const MOST_MESSAGES: usize = 128 * 1024;
/// At the end of a message that was cut.
const CUT: &str = "...";

/// Cuts the longest messages, so that all of them have at most so many bytes.
pub(super) fn cut_messages(entries: &mut [ManifestCondition], most: usize) {
    let messages = entries.iter().flat_map(|entry| &entry.conditions).map(|condition| condition.message.len());
    let Some(longest) = longest(messages.collect(), most) else { return };
    let conditions = entries.iter_mut().flat_map(|entry| &mut entry.conditions);
    conditions.for_each(|condition| cut(&mut condition.message, longest));
}

/// How long a message may be, so that all together are short enough; `None` if they are.
fn longest(mut lengths: Vec<usize>, most: usize) -> Option<usize> {
    lengths.sort_unstable();
    let (mut left, count) = (most, lengths.len());
    for (index, length) in lengths.into_iter().enumerate() {
        let share = left / (count - index);
        if length > share {
            return Some(share);
        }
        left -= length;
    }
    None
}

fn cut(message: &mut String, longest: usize) {
    if message.len() > longest {
        message.truncate(message.floor_char_boundary(longest.saturating_sub(CUT.len())));
        message.push_str(CUT);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(message: &str) -> ManifestCondition {
        let condition = json!({"type": "Applied", "status": "False", "reason": "AppliedManifestFailed",
            "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"resourceMeta": {"ordinal": 0}, "conditions": [condition]})).unwrap()
    }

    #[test]
    fn of_many_failing_objects_only_the_longest_messages_are_cut_and_every_reason_stays() {
        let (short, long) = ("no".to_owned(), "\u{e9}".repeat(16_000));
        let mut entries: Vec<_> = (0..1000).map(|index| entry(if index % 2 == 0 { &short } else { &long })).collect();
        cut_messages(&mut entries, MOST_MESSAGES);
        let conditions: Vec<_> = entries.iter().map(|entry| &entry.conditions[0]).collect();
        assert!(conditions.iter().all(|condition| condition.reason == "AppliedManifestFailed"));
        assert_eq!(conditions[0].message, "no");
        assert!(conditions[1].message.ends_with("\u{e9}...") && conditions[1].message.len() > 200);
        let total: usize = conditions.iter().map(|condition| condition.message.len()).sum();
        assert!(total <= MOST_MESSAGES, "{total}");
        let before = entries.clone();
        cut_messages(&mut entries, MOST_MESSAGES);
        assert_eq!(entries, before, "the text does not change while nothing else does");
    }
}
