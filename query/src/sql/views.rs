//! The rules of efficiency as views: each is a text in SQL that a user can read, change and run.
//!
//! Reports don't use them: they work the same figures out in `cardhour_books::report`, and a test holds one against the other.

use datafusion::error::DataFusionError;
use datafusion::prelude::SessionContext;

/// A view over tables that may not be there.
struct View {
    name: &'static str,
    /// Tables and views without which it isn't there.
    needs: &'static [&'static str],
    query: &'static str,
}

/// In order: later ones may name earlier ones, and of two with one name the first that can be made is.
const VIEWS: &[View] = &[
    View { name: "attempts", needs: &["jobs", "observed_jobs"], query: include_str!("views/attempts.sql") },
    View { name: "attempts", needs: &["jobs"], query: include_str!("views/attempts_of_records.sql") },
    View { name: "efficiency", needs: &["usage", "attempts"], query: include_str!("views/efficiency.sql") },
    View { name: "low_use", needs: &["efficiency"], query: include_str!("views/low_use.sql") },
    View { name: "failures", needs: &["efficiency"], query: include_str!("views/failures.sql") },
    View {
        name: "card_memory",
        needs: &["attempts", "devices", "holdings", "samples"],
        query: include_str!("views/card_memory.sql"),
    },
];

/// Puts into a session those views for which it has the tables. Only what a query may name is planned.
///
/// Errors: a view is no SQL over our tables, which is a defect of ours.
pub(super) async fn register(session: &SessionContext, query: &str) -> Result<(), DataFusionError> {
    let asks = |name: &str| super::mentions(query, name);
    if !asks("information_schema") && !VIEWS.iter().any(|view| asks(view.name)) {
        return Ok(());
    }
    for view in VIEWS {
        let is_there = |name: &str| session.table_exist(name);
        let mut can_be_made = !is_there(view.name)?;
        for name in view.needs {
            can_be_made &= is_there(name)?;
        }
        if !can_be_made {
            continue;
        }
        session.sql(&format!("create view {} as {}", view.name, view.query)).await?;
    }
    Ok(())
}
