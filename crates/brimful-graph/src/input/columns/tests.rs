use super::*;

fn row(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn choice(source: &str, target: &str, weight: &str) -> ColumnChoice {
    let said = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ColumnChoice {
        source: said(source),
        target: said(target),
        weight: said(weight),
        ..ColumnChoice::default()
    }
}

/// Source, target and weight, and whether there is a header.
fn chosen(
    choice: &ColumnChoice,
    first: &str,
    second: &str,
) -> Result<(usize, usize, Option<usize>, bool), String> {
    let (roles, header) = choice
        .of_rows(&row(first), Some(&row(second)), false)
        .map_err(|doubt| doubt.error(Path::new("f")).to_string())?;
    Ok((roles.source, roles.target, roles.weight, header))
}

#[test]
fn what_is_beyond_doubt_is_taken() {
    let none = ColumnChoice::default();
    for (first, second, expected) in [
        ("1 2", "3 4", (0, 1, None, false)),
        ("1 bob", "carol dave", (0, 1, None, false)),
        ("citations papers", "3 4", (0, 1, None, true)),
        ("source target", "alice bob", (0, 1, None, true)),
        ("TARGET Source", "1 2", (1, 0, None, true)),
        ("id src dst w", "9 1 2 .5", (1, 2, Some(3), true)),
        ("Source Target Type Id Label Weight", "1 2 D 0 x 3", (0, 1, Some(5), true)),
        ("FromNodeId ToNodeId time", "1 2 3", (0, 1, None, true)),
        (":START_ID :END_ID :TYPE", "1 2 x", (0, 1, None, true)),
        ("one other weight", "1 2 3", (0, 1, Some(2), true)),
        ("head relation tail", "a r b", (0, 2, None, true)),
        ("to from", "1 2", (1, 0, None, true)),
        ("a b __index_level_0__", "3 4 5", (0, 1, None, true)),
        ("tail head", "1 2", (0, 1, None, true)),
        ("source label", "1 2", (0, 1, None, true)),
        ("name dst", "1 2", (0, 1, None, true)),
    ] {
        assert_eq!(chosen(&none, first, second), Ok(expected), "{first}");
    }
}

#[test]
fn what_is_not_is_a_doubt() {
    let none = ColumnChoice::default();
    for (first, second) in [
        ("1 2 3", "1 2 3"),
        ("1", "2"),
        ("alice bob", "bob carol"),
        ("alice bob", "carol 7"),
        ("id a b", "1 2 3"),
        ("source target from to", "1 2 3 4"),
        ("source target destination", "1 2 3"),
        ("source target weight w", "1 2 3 4"),
        ("tail relation head", "a r b"),
        ("__index_level_0__ x", "1 2"),
        ("x y z __index_level_0__", "1 2 3 4"),
        ("to src", "1 2"),
        ("target origin", "1 2"),
        ("target label", "1 2"),
        ("label src_id", "1 2"),
        ("dst from weight", "1 2 3"),
    ] {
        assert!(chosen(&none, first, second).is_err(), "{first}");
    }
    // No option takes the first two of these.
    for names in ["source target from to", "source target weight w", "to src x"] {
        let text = none.of_names(&row(names)).unwrap_err().error(Path::new("f")).to_string();
        assert!(text.ends_with("--target COL [--weight COL]"), "{text}");
    }
    let text = chosen(&none, "source target source", "1 2 3").unwrap_err();
    assert!(text.contains("give them by number, from 1"), "{text}");
    let text = chosen(&none, "source weight", "1 2").unwrap_err();
    assert!(
        text.contains("column 'weight' has the name of a weight, which leaves one column"),
        "{text}"
    );
    let choice = ColumnChoice { weight: Some("source".into()), ..ColumnChoice::default() };
    let text = chosen(&choice, "source target", "1 2").unwrap_err();
    assert!(
        text.contains("column 'source' is the weight, which leaves one column for the two"),
        "{text}"
    );
    let text = chosen(&none, "1 2 3", "1 2 3").unwrap_err();
    assert_eq!(
        text,
        "f: the columns of the edges are ambiguous; it has 3 columns (first line: 1, 2, 3); \
         give them by number, from 1: --source COL --target COL [--weight COL], or \
         --ignore-extra to take the first two and leave out the others"
    );
}

#[test]
fn a_missing_column_is_named_beside_those_that_there_are() {
    let choice = ColumnChoice { source: Some("x".into()), ..ColumnChoice::default() };
    let text = chosen(&choice, "source target", "1 2").unwrap_err();
    assert!(
        text.starts_with("f: it has no column 'x', but 2 columns: source, target; give them"),
        "{text}"
    );
}

#[test]
fn words_above_integers_name_columns_only_of_integer_ids() {
    let none = ColumnChoice::default();
    let header = |first: &str, second: &str, string_ids| {
        let rows = none.of_rows(&row(first), Some(&row(second)), string_ids);
        rows.ok().map(|(_, header)| header)
    };
    assert_eq!(header("alice bob", "7 8", false), Some(true));
    assert_eq!(header("alice bob", "7 8", true), None);
    assert_eq!(header("source target", "7 8", true), Some(true));
    assert_eq!(header("one other weight", "a b .5", true), Some(true));
}

#[test]
fn what_the_user_says_is_taken() {
    assert_eq!(chosen(&choice("", "", "3"), "1 2 3", "1 2 3"), Ok((0, 1, Some(2), false)));
    assert_eq!(chosen(&choice("3", "1", ""), "1 2 3", "1 2 3"), Ok((2, 0, None, false)));
    assert_eq!(chosen(&choice("b", "a", ""), "a b c", "x y z"), Ok((1, 0, None, true)));
    assert_eq!(chosen(&choice("", "", "c"), "a b c", "x y z"), Ok((0, 1, Some(2), true)));
    let extra = ColumnChoice { ignore_extra: true, ..ColumnChoice::default() };
    assert_eq!(chosen(&extra, "1 2 3 4", "1 2 3 4"), Ok((0, 1, None, false)));
    let bare = ColumnChoice { header: Some(false), ..ColumnChoice::default() };
    assert_eq!(chosen(&bare, "source target", "x y"), Ok((0, 1, None, false)));
    let headed = ColumnChoice { header: Some(true), ..ColumnChoice::default() };
    assert_eq!(chosen(&headed, "alice bob", "x y"), Ok((0, 1, None, true)));
    for wrong in
        [choice("5", "", ""), choice("x", "b", ""), choice("a", "a", ""), choice("a", "", "a")]
    {
        assert!(chosen(&wrong, "a b c", "1 2 3").is_err(), "{wrong:?}");
    }
}
