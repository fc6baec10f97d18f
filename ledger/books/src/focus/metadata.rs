//! The metadata object that goes with each delivery: what the files are, by which version, and what is in each column.

use super::card_rows::TAG_PREFIX;
use super::value::instant;
use super::{DECIMAL_DIGITS, Dataset, DatasetKind, FocusMonth, Kind, Version};
use serde_json::{Map, Value as Json, json};

/// A file of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOfDelivery {
    /// Its name.
    pub name: String,
    /// `csv` or `parquet`.
    pub format: &'static str,
    /// Of what it is.
    pub dataset: DatasetKind,
    /// How many rows it has.
    pub rows: usize,
    /// Its length.
    pub bytes: usize,
    /// SHA-256 of it, 64 hex digits.
    pub sha256: String,
    schema: Json,
}

impl FileOfDelivery {
    /// A file that `dataset` was written to.
    pub fn new<R>(dataset: &Dataset<R>, name: String, format: &'static str, bytes: usize, sha256: String) -> Self {
        let columns: Vec<Json> = dataset
            .columns
            .iter()
            .map(|column| {
                let mut definition = Map::new();
                let mut define = |name: &str, value: Json| definition.insert(name.to_owned(), value);
                define("ColumnName", json!(column.name));
                match column.kind {
                    Kind::Text => {
                        define("DataType", json!("STRING"));
                        define("StringEncoding", json!("UTF-8"));
                    }
                    Kind::Decimal { scale } => {
                        define("DataType", json!("DECIMAL"));
                        define("NumericPrecision", json!(DECIMAL_DIGITS));
                        define("NumberScale", json!(scale));
                    }
                    Kind::Instant => {
                        define("DataType", json!("DATETIME"));
                    }
                    Kind::Json => {
                        define("DataType", json!("JSON"));
                        define("StringEncoding", json!("UTF-8"));
                    }
                }
                if column.name == "Tags" {
                    define("ProviderTagPrefixes", json!([TAG_PREFIX]));
                }
                Json::Object(definition)
            })
            .collect();
        let schema = Json::Array(columns);
        Self { name, format, dataset: dataset.kind, rows: dataset.rows.len(), bytes, sha256, schema }
    }
}

/// The metadata of a delivery of one month, as indented JSON that ends in a line feed.
///
/// `generator_version`: of the program; `note`: what its reader has to know of it. The same delivery has the same metadata: its only times are the month's, and that of its close.
pub fn metadata(
    month: &FocusMonth<'_>,
    version: Version,
    generator_version: &str,
    files: &[FileOfDelivery],
    note: Option<&str>,
) -> String {
    let period = month.period();
    let closed = month.closed_at().map(instant);
    let told = instant(month.told_at());
    let schema_id =
        |file: &FileOfDelivery| format!("cardhour-{generator_version}-focus-{version}-{}", file.dataset.file_name());
    let instance_id = |file: &FileOfDelivery| format!("{}-{}", month.month, file.dataset.file_name());
    let schemas: Vec<Json> = files
        .iter()
        .map(|file| {
            let mut schema = Map::new();
            schema.insert("SchemaId".to_owned(), json!(schema_id(file)));
            schema.insert("FocusVersion".to_owned(), json!(version.name()));
            schema.insert("FocusDatasetId".to_owned(), json!(file.dataset.name()));
            schema.insert("DataGeneratorVersion".to_owned(), json!(generator_version));
            schema.extend(closed.clone().map(|closed| ("CreationDate".to_owned(), json!(closed))));
            schema.insert("ColumnDefinition".to_owned(), file.schema.clone());
            Json::Object(schema)
        })
        .collect();
    let instances: Vec<Json> = files
        .iter()
        .map(|file| {
            json!({
                "DatasetInstanceId": instance_id(file),
                "DatasetInstanceName": format!("{} of {}", file.dataset.name(), month.month),
                "FocusDatasetId": file.dataset.name(),
            })
        })
        .collect();
    let recency: Vec<Json> = files
        .iter()
        .map(|file| {
            json!({
                "DatasetInstanceId": instance_id(file),
                "DatasetInstanceComplete": period.is_closed,
                "DatasetInstanceLastUpdated": told,
                "RecencyLastUpdated": told,
                "TimeSectors": [{
                    "TimeSectorStart": instant(period.during.start()),
                    "TimeSectorEnd": instant(period.during.end()),
                    "TimeSectorComplete": period.is_closed,
                    "TimeSectorLastUpdated": told,
                }],
            })
        })
        .collect();
    let listed: Vec<Json> = files
        .iter()
        .map(|file| {
            json!({
                "Name": file.name,
                "Format": file.format,
                "SchemaId": schema_id(file),
                "DatasetInstanceId": instance_id(file),
                "Rows": file.rows,
                "Bytes": file.bytes,
                "Sha256": file.sha256,
            })
        })
        .collect();
    let mut object = json!({
        "FocusVersion": version.name(),
        "DataGenerator": { "DataGenerator": "cardhour" },
        "BillingPeriodStart": instant(period.during.start()),
        "BillingPeriodEnd": instant(period.during.end()),
        "DatasetInstance": instances,
        "Schema": schemas,
        "Recency": recency,
        "x_Files": listed,
    });
    if let Some(note) = note {
        object["x_Note"] = json!(note);
    }
    let mut text = serde_json::to_string_pretty(&object).expect("texts and numbers");
    text.push('\n');
    text
}
