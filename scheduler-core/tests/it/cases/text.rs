//! A case as a few lines that can be read.

use std::fmt::Write as _;

use serde_json::Value;

/// The case, what it expects and what differed.
pub fn failure(case: &Value, what: &[String]) -> String {
    let mut out = String::new();
    let word = |key: &str| case[key].as_str().unwrap_or("?");
    let _ = writeln!(out, "{} {} ({}): {}", word("id"), word("family"), word("adopt"), word("title"));
    if let Value::Object(setup) = &case["setup"] {
        for (key, value) in setup {
            match value {
                Value::Array(rows) if rows.iter().all(Value::is_object) => {
                    for row in rows {
                        let _ = writeln!(out, "  {key:<9} {}", line(row));
                    }
                }
                value => {
                    let _ = writeln!(out, "  {key:<9} {}", line(value));
                }
            }
        }
    }
    for row in case["incoming"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "  arrives   {}", line(row));
    }
    let _ = writeln!(out, "  expected  {}", line(&case["expected"]));
    let _ = writeln!(out, "  because   {}", word("why"));
    for one in what {
        let _ = writeln!(out, "  BUT       {one}");
    }
    out
}

/// `a 1, b 2` for an object; JSON for the rest.
fn line(value: &Value) -> String {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| match value {
                Value::String(text) => format!("{key} {text}"),
                value => format!("{key} {value}"),
            })
            .collect::<Vec<_>>()
            .join(", "),
        value => value.to_string(),
    }
}
