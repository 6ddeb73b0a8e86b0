//! Where in the document a value is.

use std::{ops::Range, rc::Rc};

use serde_json::Value;

/// A step from a value to one in it. A field sorts before an element; there are never both in one value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// A place, linked to the one around it.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Root,
    In(Rc<Self>, Step),
    /// Some elements of a list.
    Slice(Rc<Self>, Range<usize>),
}

impl Place {
    /// The place of a field.
    pub(super) fn key(self: &Rc<Self>, key: &str) -> Rc<Self> {
        Rc::new(Self::In(self.clone(), Step::Key(key.to_owned())))
    }

    /// The place of an element: that of a slice is in its list.
    pub(super) fn index(self: &Rc<Self>, index: usize) -> Rc<Self> {
        match self.as_ref() {
            Self::Slice(list, range) => list.index(range.start + index),
            _ => Rc::new(Self::In(self.clone(), Step::Index(index))),
        }
    }

    /// The place of several elements.
    pub(super) fn slice(self: &Rc<Self>, range: Range<usize>) -> Rc<Self> {
        match self.as_ref() {
            Self::Slice(list, outer) => list.slice(outer.start + range.start..outer.start + range.end),
            _ => Rc::new(Self::Slice(self.clone(), range)),
        }
    }

    /// The steps that lead there; several for several elements.
    pub(super) fn to_steps(&self) -> Vec<Vec<Step>> {
        match self {
            Self::Slice(list, range) => range.clone().flat_map(|index| list.index(index).to_steps()).collect(),
            _ => vec![self.path()],
        }
    }

    fn path(&self) -> Vec<Step> {
        let (mut steps, mut place) = (Vec::new(), self);
        while let Self::In(around, step) = place {
            steps.push(step.clone());
            place = around;
        }
        steps.reverse();
        steps
    }
}

/// Removes what the steps lead to, if there is anything.
pub(super) fn remove(document: &mut Value, steps: &[Step]) {
    let Some((last, way)) = steps.split_last() else { return };
    let around = way.iter().try_fold(document, |value, step| match step {
        Step::Key(key) => value.get_mut(key),
        Step::Index(index) => value.get_mut(index),
    });
    match (around, last) {
        (Some(Value::Object(map)), Step::Key(key)) => _ = map.remove(key),
        (Some(Value::Array(list)), Step::Index(index)) if *index < list.len() => _ = list.remove(*index),
        _ => {}
    }
}
