use super::*;

#[test]
fn the_first_equals_sign_splits_and_quotes_hold_commas() {
    check(
        Format::SacctKv,
        "v=1,JobID=7,\"AllocTRES=cpu=2,gres/gpu=1\"\nJobID=7.0,ExitCode=0:0,v=1\nJobID=8,JobID=9,User=\n",
        &ReaderOptions::default(),
        "v|JobID|AllocTRES|ExitCode|User
         1: 1|7|cpu=2,gres/gpu=1||
         2: 1|7.0||0:0|
         3: |8|||",
    );
}

#[test]
fn a_field_without_a_key_rejects_its_row() {
    check(
        Format::SacctKv,
        "a=1,b=2\na=1,oops\n=3\na=4,\"b=cut",
        &ReaderOptions::default(),
        "a|b
         1: 1|2
         2! field 2 is \"oops\", not key=value «a=1,oops»
         3! field 1 is \"=3\", not key=value «=3»
         4! the input ends inside a quoted value: it may be cut off «a=4,\"b=cut»",
    );
}
