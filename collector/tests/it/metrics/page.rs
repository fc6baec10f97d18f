//! A page, looked into.

/// A page in Prometheus's own text.
pub struct Page(pub String);

impl Page {
    /// Values of the series of a family that have all of these labels.
    pub fn values(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        self.series(name, labels).iter().map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap()).collect()
    }

    /// The value of the only such series.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        match self.values(name, labels)[..] {
            [value] => value,
            ref all => panic!("{} series of {name} with {labels:?}", all.len()),
        }
    }

    /// What stands behind the only such series, letter by letter.
    #[track_caller]
    pub fn text(&self, name: &str, labels: &[(&str, &str)]) -> &str {
        let series = self.series(name, labels);
        assert_eq!(series.len(), 1, "{name} {labels:?}");
        series[0].rsplit_once(' ').unwrap().1
    }

    /// Lines of such series.
    pub fn series(&self, name: &str, labels: &[(&str, &str)]) -> Vec<&str> {
        let has = |line: &str| labels.iter().all(|(key, value)| label(line, key) == Some(*value));
        self.lines().filter(|line| name_of(line) == name && has(line)).collect()
    }

    /// A label of each of those series, in order.
    pub fn labels(&self, name: &str, key: &str) -> Vec<&str> {
        let mut all: Vec<&str> = self.series(name, &[]).into_iter().filter_map(|line| label(line, key)).collect();
        all.sort_unstable();
        all
    }

    /// Every series.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines().filter(|line| !line.starts_with('#'))
    }
}

/// The name that a series has.
pub fn name_of(line: &str) -> &str {
    &line[..line.find(['{', ' ']).unwrap()]
}

/// A label of a series. Labels of these tests have no quotes in them.
pub fn label<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let labels = line.split_once('{')?.1;
    let mut from = 0;
    loop {
        let at = from + labels[from..].find(key)?;
        let is_whole = at == 0 || labels[..at].ends_with(',');
        if let Some(value) = labels[at + key.len()..].strip_prefix("=\"").filter(|_| is_whole) {
            return value.split('"').next();
        }
        from = at + key.len();
    }
}
