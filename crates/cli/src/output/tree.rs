//! Trees of `<name> value` lines.

/// A line of the tree, and its children.
#[derive(Debug, PartialEq)]
pub(crate) struct Node {
    line: String,
    children: Vec<Self>,
}

impl Node {
    /// A name with children.
    pub(crate) fn branch(name: &str, children: Vec<Self>) -> Self {
        Self { line: format!("<{name}>"), children }
    }

    /// A name and its value.
    pub(crate) fn leaf(name: &str, value: &str) -> Self {
        let line = if value.is_empty() { format!("<{name}>") } else { format!("<{name}> {value}") };
        Self { line, children: Vec::new() }
    }

    /// Renders the tree.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("{}\n", self.line);
        self.render_children("", &mut text);
        text
    }

    fn render_children(&self, indent: &str, text: &mut String) {
        let last = self.children.len().saturating_sub(1);
        for (index, child) in self.children.iter().enumerate() {
            let (branch, below) = if index == last { ("└── ", "    ") } else { ("├── ", "│   ") };
            text.push_str(&format!("{indent}{branch}{}\n", child.line));
            child.render_children(&format!("{indent}{below}"), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_below_their_parent() {
        let capacity = Node::branch("Capacity", vec![Node::leaf("Cpu", "8")]);
        let cluster = Node::branch("c1", vec![Node::leaf("Accepted", "true"), capacity]);
        let tree = Node::branch("ManagedCluster", vec![cluster, Node::leaf("c2", "")]);
        let expected = "\
<ManagedCluster>
├── <c1>
│   ├── <Accepted> true
│   └── <Capacity>
│       └── <Cpu> 8
└── <c2>
";
        assert_eq!(tree.render(), expected);
    }
}
