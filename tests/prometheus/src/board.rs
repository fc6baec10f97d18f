//! Grafana's boards: what they ask.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// A board.
pub struct Board {
    /// Its file.
    pub path: PathBuf,
    /// What is in it.
    pub json: Value,
}

impl Board {
    /// Those whose figures come from where this tag says.
    pub fn tagged(tag: &str) -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dashboards");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let boards = files.filter(|path| path.extension().is_some_and(|end| end == "json")).map(|path| {
            let json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Self { path, json }
        });
        boards.filter(|board| board.json["tags"].as_array().is_some_and(|tags| tags.iter().any(|t| t == tag))).collect()
    }

    /// Every query of its panels and variables, with what stands for its variables: all of them.
    pub fn queries(&self) -> Vec<(String, String)> {
        let variables = self.json["templating"]["list"].as_array().unwrap();
        let filled = |query: &str| {
            let mut query =
                query.replace("$__rate_interval", "15s").replace("$__interval", "15s").replace("$__range", "1m");
            for variable in variables {
                let name = variable["name"].as_str().unwrap();
                query = query.replace(&format!("${{{name}}}"), ".+").replace(&format!("${name}"), ".+");
            }
            assert!(!query.contains('$'), "{}: a variable of which nothing is known: {query}", self.path.display());
            query
        };
        let mut queries = Vec::new();
        let mut panels: Vec<&Value> = self.json["panels"].as_array().unwrap().iter().collect();
        while let Some(panel) = panels.pop() {
            panels.extend(panel["panels"].as_array().into_iter().flatten());
            for target in panel["targets"].as_array().into_iter().flatten() {
                let title = panel["title"].as_str().unwrap().to_owned();
                queries.push((title, filled(target["expr"].as_str().unwrap())));
            }
        }
        for variable in variables.iter().filter(|variable| variable["type"] == "query") {
            // label_values(SERIES, label)
            let asked = variable["query"]["query"].as_str().or(variable["query"].as_str()).unwrap();
            let inside = asked.strip_prefix("label_values(").unwrap().strip_suffix(')').unwrap();
            let (series, label) = inside.rsplit_once(',').unwrap();
            queries.push((format!("variable {asked}"), format!("count by ({}) ({})", label.trim(), filled(series))));
        }
        queries
    }
}
