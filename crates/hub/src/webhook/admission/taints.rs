//! When taints were added.
//!
//! Users do not say when: the hub does, so that `tolerationSeconds` cannot be stretched. A taint that is sent back without
//! its time, as `kubectl apply` does, keeps the time it had.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::cluster::v1::Taint;

/// The taints with their times, or the keys of those that came with a time of their own.
pub(super) fn timed(old: Option<&[Taint]>, new: &[Taint], now: &Time) -> Result<Vec<Taint>, Vec<String>> {
    let Some(old) = old else {
        return Ok(new.iter().map(|taint| at(taint, Some(now.clone()))).collect());
    };
    let times = new.iter().map(|taint| time(old, taint, now).map(|time| at(taint, Some(time))));
    let (timed, refused): (Vec<_>, Vec<_>) = times.partition(Result::is_ok);
    match refused.is_empty() {
        true => Ok(timed.into_iter().flatten().collect()),
        false => Err(refused.into_iter().filter_map(Result::err).collect()),
    }
}

fn at(taint: &Taint, time_added: Option<Time>) -> Taint {
    Taint { time_added, ..taint.clone() }
}

/// The time of one taint; its key if it came with another time than the one it has. Several taints may have the same key, each
/// with another effect, so a taint is the same if key, value and effect are.
fn time(old: &[Taint], taint: &Taint, now: &Time) -> Result<Time, String> {
    let mut had = old.iter().filter(|old| is_same(old, taint)).filter_map(|old| old.time_added.clone());
    match &taint.time_added {
        None => Ok(had.next().unwrap_or_else(|| now.clone())),
        Some(sent) => had.find(|had| had.0.as_second() == sent.0.as_second()).ok_or_else(|| taint.key.clone()),
    }
}

fn is_same(one: &Taint, other: &Taint) -> bool {
    (&one.key, &one.effect, value(one)) == (&other.key, &other.effect, value(other))
}

fn value(taint: &Taint) -> &str {
    taint.value.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Time {
        Time(jiff::Timestamp::from_second(second).unwrap())
    }

    fn taint(key: &str, value: &str, time: Option<i64>) -> Taint {
        Taint { key: key.into(), value: Some(value.into()), time_added: time.map(second), ..Taint::default() }
    }

    /// The times after an update from `old` to `new` in second 100, or the keys that are refused.
    fn updated(old: &[Taint], new: &[Taint]) -> Result<Vec<i64>, Vec<String>> {
        let timed = timed(Some(old), new, &second(100))?;
        Ok(timed.into_iter().map(|taint| taint.time_added.unwrap().0.as_second()).collect())
    }

    #[test]
    fn the_taints_of_a_new_cluster_get_the_present_time_whatever_was_sent() {
        let new = [taint("a", "", None), taint("b", "", Some(7))];
        let timed = timed(None, &new, &second(100)).unwrap();
        assert!(timed.iter().all(|taint| taint.time_added == Some(second(100))), "{timed:?}");
    }

    #[test]
    fn a_new_or_changed_taint_gets_the_present_time() {
        let old = [taint("a", "1", Some(7))];
        assert_eq!(updated(&old, &[taint("a", "2", None), taint("b", "", None)]), Ok(vec![100, 100]));
        let effect = Taint { effect: ocm_api::cluster::v1::TaintEffect::PreferNoSelect, ..taint("a", "1", None) };
        assert_eq!(updated(&old, &[effect]), Ok(vec![100]));
    }

    #[test]
    fn an_unchanged_taint_keeps_its_time_whether_it_is_sent_or_not() {
        let old = [taint("a", "", Some(7)), taint("b", "x", Some(8))];
        assert_eq!(
            updated(&old, &[taint("b", "x", Some(8)), Taint { value: None, ..taint("a", "", None) }]),
            Ok(vec![8, 7])
        );
        assert_eq!(updated(&old, &[]), Ok(vec![]));
        assert_eq!(updated(&[taint("a", "", None)], &[taint("a", "", None)]), Ok(vec![100]), "it had none");
    }

    #[test]
    fn taints_of_the_same_key_each_keep_their_time() {
        let soft = Taint { effect: ocm_api::cluster::v1::TaintEffect::PreferNoSelect, ..taint("a", "", Some(9)) };
        let old = [taint("a", "", Some(7)), soft.clone(), taint("a", "x", Some(8))];
        assert_eq!(updated(&old, &old), Ok(vec![7, 9, 8]));
        let untimed = Taint { time_added: None, ..soft.clone() };
        assert_eq!(updated(&old, &[untimed, taint("a", "x", Some(8))]), Ok(vec![9, 8]));
        let of_another = Taint { time_added: Some(second(7)), ..soft };
        assert_eq!(updated(&old, &[of_another]), Err(vec!["a".to_owned()]));
    }

    #[test]
    fn a_time_that_is_not_the_taints_own_is_refused_with_all_keys() {
        let old = [taint("a", "", Some(7)), taint("b", "x", Some(8)), taint("d", "", None)];
        let new = [
            taint("a", "", Some(9)),
            taint("b", "y", Some(8)),
            taint("c", "", Some(1)),
            taint("d", "", Some(1)),
            taint("e", "", None),
        ];
        let keys = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        assert_eq!(updated(&old, &new), Err(keys));
    }
}
