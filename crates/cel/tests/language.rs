//! The language and its functions, as tables of expressions with their values.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use ocm_cel::{Budget, Environment, Problem, Value};
use serde_json::json;

fn evaluate(source: &str) -> Result<Value, ocm_cel::Error> {
    let object = json!({
        "metadata": {"name": "web", "labels": {"b": "2", "a": "1"}},
        "spec": {"replicas": 3, "ratio": 0.5, "containers": [{"name": "x", "image": "repo/x:v1.2"}, {"name": "y"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
        "nothing": null,
    });
    let program = Environment::new(["object"]).compile(source)?;
    program.evaluate([Value::from(&object)], &mut Budget::new(1_000_000, 1_000_000))
}

/// Expressions that are true.
fn all_true(sources: &[&str]) {
    for source in sources {
        match evaluate(source) {
            Ok(Value::Bool(true)) => {}
            other => panic!("{source}: {other:?}"),
        }
    }
}

/// Expressions with what their error says.
fn all_fail(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        let message = evaluate(source).expect_err(source).to_string();
        assert!(message.contains(expected), "{source}: {message}");
    }
}

#[test]
fn operators_have_cels_precedence_and_meaning() {
    all_true(&[
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "-7 / 2 == -3 && -7 % 2 == -1",
        "10 - 4 - 3 == 3",
        "!false && !!true",
        "--1 == 1 && -(1) == -1",
        "1 < 2 == true",
        "true || false && false",
        "false ? false : true ? true : false",
        "1u + 2u == 3u && 0x10 == 16",
        "1 == 1.0 && 1u == 1 && 2.5 > 2",
        "'a' + 'b' == 'ab' && 'a' < 'b' && b'a' + b'b' == b'ab'",
        "[1] + [2, 3] == [1, 2, 3]",
        "{'a': 1, 2: 'x'} == {2: 'x', 'a': 1}",
        "2 in [1, 2] && 'a' in {'a': 1} && !(3 in [1, 2])",
        "1 != '1' && null == null && [] != {}",
        "[1, 'x', [2]] == [1.0, 'x', [2u]]",
        "-9223372036854775808 < 0 && 9223372036854775807 > 0",
        "'''a\nb''' == 'a\\nb' // a comment",
        "double('NaN') != double('NaN')",
    ]);
}

#[test]
fn what_has_no_value_says_why_and_where() {
    all_fail(&[
        ("1 / 0", "division by zero, or out of range (line 1, column 3)"),
        ("1.0 % 2.0", "% is not defined for double and double"),
        ("9223372036854775807 + 1", "the result of + is no int"),
        ("1 + 1.0", "+ is not defined for int and double"),
        ("'a' < 1", "< is not defined for string and int"),
        ("!1", "! is not defined for int"),
        ("1 ? 2 : 3", "? is not defined for int"),
        ("object.status.phase", "there is no field phase (line 1, column 14)"),
        ("object.metadata.name.first", "there is no field first in a value of type string"),
        ("object.nothing.x", "there is no field x in null"),
        ("[1][1]", "there is no element 1"),
        ("{'a': 1}['b']", "there is no key \"b\""),
        ("[1]['a']", "a list has no index of type string"),
        ("1.exists(x, true)", "and not a list or a map"),
        ("[1].all(x, x)", "all() is not defined for int"),
        ("{[]: 1}", "the key of a map"),
        ("size(1)", "size() is not defined for (int)"),
        ("true &&\n  object.x", "there is no field x (line 2, column 9)"),
    ]);
}

#[test]
fn what_is_no_expression_says_where() {
    let cases = [
        ("", "expected a value, found the end of the expression (line 1, column 1)"),
        ("1 +", "expected a value, found the end of the expression (line 1, column 4)"),
        ("(1", "expected \")\", found the end of the expression (line 1, column 3)"),
        ("1 2", "expected an operator or the end of the expression, found a literal (line 1, column 3)"),
        ("a = b", "unexpected character '=' (line 1, column 3)"),
        ("objct.status", "there is no variable objct; known here: object (line 1, column 1)"),
        ("foo(1)", "there is no function foo() (line 1, column 1)"),
        ("'a'.foo()", "there is no method foo() (line 1, column 5)"),
        ("size()", "size() takes 1 arguments, not 0 (line 1, column 1)"),
        ("'a'.replace('b')", "replace() takes 2 to 3 arguments, not 1"),
        ("has(object)", "has() tests a field"),
        ("[1].all(1, true)", "expected a name, found a literal"),
        ("[1].all(x, y)", "there is no variable y"),
        ("[1].all(x, true) && x", "there is no variable x"),
        ("object.status{a: 1}", "expected an operator or the end"),
        ("'a\nb'", "the text is not closed by a quote (line 1, column 1)"),
        ("9223372036854775808", "is no int"),
        ("for", "for is a reserved word"),
        ("@", "unexpected character '@'"),
    ];
    for (source, expected) in cases {
        let error = evaluate(source).expect_err(source);
        assert!(matches!(error.problem, Problem::Invalid(_)), "{source}: {error:?}");
        assert!(error.to_string().contains(expected), "{source}: {error}");
    }
}

#[test]
fn logic_needs_only_what_decides() {
    all_true(&[
        "true || object.x == 1",
        "object.x == 1 || true",
        "!(object.x == 1 && false)",
        "[1, 2].exists(x, x == 2 || object.x)",
        "[0, 1].exists(x, 1 / x == 1)",
        "![0, 1].all(x, 2 / x == 1)",
        "true ? true : object.x",
    ]);
    all_fail(&[
        ("object.x == 1 || false", "there is no field x"),
        ("object.x == 1 && true", "there is no field x"),
        ("[0, 1].exists_one(x, 1 / x == 1)", "division by zero"),
    ]);
}

#[test]
fn macros_visit_lists_and_the_sorted_keys_of_maps() {
    all_true(&[
        "object.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "object.spec.containers.map(c, c.name) == ['x', 'y']",
        "object.spec.containers.filter(c, has(c.image)).size() == 1",
        "object.spec.containers.map(c, has(c.image), c.image) == ['repo/x:v1.2']",
        "object.status.conditions.exists_one(c, c.status == 'True')",
        "object.metadata.labels.map(k, k) == ['a', 'b']",
        "object.metadata.labels.all(k, object.metadata.labels[k] != '')",
        "[[1, 2], [3]].all(l, l.all(x, x > 0))",
        "[1, 2].map(x, [3].map(x, x + 1)) == [[4], [4]]",
        "[].all(x, false) && ![].exists(x, true)",
        "has(object.status) && !has(object.status.phase) && has(object.nothing)",
    ]);
}

#[test]
fn optionals_are_cel_gos() {
    all_true(&[
        "object.?status.?phase.orValue('none') == 'none'",
        "object.?metadata.name == optional.of('web')",
        "object.?metadata.name.hasValue() && !object.?x.y.z.hasValue()",
        "object.spec.containers[?0].name == optional.of('x') && !object.spec.containers[?9].hasValue()",
        "{'a': 1}[?'b'].or(optional.of(2)).value() == 2",
        "[?optional.none(), ?optional.of(1), 2] == [1, 2]",
        "{?'a': optional.none(), ?'b': optional.of(1)} == {'b': 1}",
        "optional.ofNonZeroValue('') == optional.none()",
        "object.?spec.replicas.optMap(r, r + 1) == optional.of(4)",
        "object.?spec.optFlatMap(s, s.?x) == optional.none()",
        "!has(object.?status.phase)",
    ]);
    all_fail(&[("object.?x.value()", "the optional has no value"), ("[?1]", "must be an optional")]);
}

#[test]
fn conversions_are_cels() {
    all_true(&[
        "int('12') == 12 && int(3.9) == 3 && int(-3.9) == -3 && uint(3) == 3u && double('1.5') == 1.5",
        "string(1) == '1' && string(1.5) == '1.5' && string(true) == 'true' && string(1000000.0) == '1e+06'",
        "bool('true') && !bool('f') && string(b'a') == 'a' && bytes('é').size() == 2",
        "type(1) == int && type('') == string && type([]) == list && type(null) == null_type && type(int) == type",
        "dyn(1) == 1",
        "timestamp('2024-05-06T07:08:09.010Z') + duration('1h') > timestamp('2024-05-06T08:00:00Z')",
        "timestamp('2024-05-06T07:08:09Z') - timestamp('2024-05-06T07:08:00Z') == duration('9s')",
        "string(duration('1m1.5s')) == '61.5s' && string(timestamp('2024-05-06T07:08:09Z')) == '2024-05-06T07:08:09Z'",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60",
    ]);
    all_fail(&[
        ("int('1x')", "\"1x\" is no int"),
        ("int(1e30)", "out of the range of int"),
        ("uint(-1)", "out of the range of uint"),
        ("timestamp('yesterday')", "is no timestamp"),
        ("duration('1d')", "is no duration"),
    ]);
}

#[test]
fn parts_of_times_are_in_utc_or_the_zone() {
    let parts = "getFullYear() == 2024 && t.getMonth() == 11 && t.getDate() == 31 && t.getDayOfMonth() == 30 \
                 && t.getDayOfWeek() == 2 && t.getDayOfYear() == 365 && t.getHours() == 23 && t.getMinutes() == 8 \
                 && t.getSeconds() == 9 && t.getMilliseconds() == 10";
    all_true(&[
        &format!("[timestamp('2024-12-31T23:08:09.010Z')].all(t, t.{parts})"),
        "timestamp('2024-12-31T23:08:09Z').getHours('+02:30') == 1",
        "duration('90m').getHours() == 1 && duration('90m').getMinutes() == 90 && duration('1.5s').getMilliseconds() == 1500",
    ]);
    all_fail(&[("timestamp('2024-12-31T23:08:09Z').getHours('Nowhere/Else')", "there is no time zone")]);
}

#[test]
fn strings_are_those_of_cel_go_counted_in_characters() {
    all_true(&[
        "size('né') == 2 && 'né'.size() == 2",
        "'tacocat'.contains('oc') && 'a'.startsWith('') && 'abc'.endsWith('bc')",
        "'hé'.charAt(1) == 'é' && 'a'.charAt(1) == ''",
        "'héllo'.indexOf('l') == 2 && 'hello'.indexOf('l', 3) == 3 && 'a'.indexOf('b') == -1 && 'a'.indexOf('') == 0",
        "'hello'.lastIndexOf('l') == 3 && 'hello'.lastIndexOf('l', 2) == 2 && 'hello'.lastIndexOf('o', 3) == -1",
        "['a', 'b'].join() == 'ab' && ['a', 'b'].join('-') == 'a-b' && [].join() == ''",
        "'aÉ'.upperAscii() == 'AÉ' && 'AÉ'.lowerAscii() == 'aÉ'",
        "'aXbXc'.replace('X', '-') == 'a-b-c' && 'aXbXc'.replace('X', '-', 1) == 'a-bXc' && 'ab'.replace('', '-') == '-a-b-'",
        "'a,b,c'.split(',') == ['a', 'b', 'c'] && 'a,b,c'.split(',', 2) == ['a', 'b,c']",
        "'aé'.split('') == ['a', 'é'] && 'ab'.split(',', 0) == [] && 'abc'.split('', 2) == ['a', 'bc']",
        "'hello'.substring(2) == 'llo' && 'hello'.substring(1, 3) == 'el' && 'a'.substring(1) == ''",
        "' a '.trim() == 'a' && 'abc'.reverse() == 'cba'",
        "strings.quote('a\"\\n') == '\"a\\\\\"\\\\n\"'",
    ]);
    all_fail(&[
        ("'a'.charAt(2)", "the text has no place 2"),
        ("'abc'.substring(2, 1)", "ends before it starts"),
        ("[1].join()", "a list of strings"),
    ]);
}

#[test]
fn texts_are_formatted_as_in_cel_go() {
    all_true(&[
        "'%s has %d of %d'.format(['web', 1, 3u]) == 'web has 1 of 3'",
        "'%.2f %e %b %x %X %o 100%%'.format([1.005, 1500.0, 5, 255, 'hi', 8]) == '1.00 1.500000e+03 101 ff 6869 10 100%'",
        "'%s'.format([[1, 'a', null, {'k': 1.5}]]) == '[1, a, null, {k: 1.5}]'",
        "'%s %s'.format([true, duration('1s')]) == 'true 1s'",
    ]);
    all_fail(&[
        ("double('NaN') < 1.0", "< is not defined for double and double"),
        ("'%d'.format(['a'])", "cannot write string with %d"),
        ("'%d'.format([])", "fewer values"),
        ("'a'.format([1])", "more values"),
        ("'%y'.format([1])", "knows no %y"),
        ("'%.999999999f'.format([1.0])", "at most 100 decimals"),
    ]);
}

#[test]
fn lists_and_regular_expressions_are_kubernetes() {
    all_true(&[
        "[1, 2, 3].isSorted() && !['b', 'a'].isSorted() && [1, 2].sum() == 3 && [].sum() == 0 && [1.5, 1.5].sum() == 3.0",
        "[2, 1, 3].min() == 1 && ['a', 'b'].max() == 'b' && [1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2",
        "'abc'.matches('^a') && matches('abc', 'b') && !'abc'.matches('^b')",
        "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == ''",
        "'1 22 3'.findAll('[0-9]+') == ['1', '22', '3'] && '1 22 3'.findAll('[0-9]', 2) == ['1', '2']",
        "!'٣'.matches('\\\\d') && 'v1.2'.matches('^v\\\\d+\\\\.[\\\\d]$') && 'x'.matches('\\\\bx\\\\b') && 'é'.matches('^.$')",
    ]);
    all_fail(&[
        ("[].min()", "min() of an empty list"),
        ("['a'].sum()", "sum() is not defined for a list of string"),
        ("[1, 'a'].max()", "max() cannot compare"),
        ("'a'.matches('(')", "is no regular expression"),
    ]);
}

#[test]
fn quantities_and_versions_are_kubernetes() {
    all_true(&[
        "quantity('1Gi').isGreaterThan(quantity('500Mi')) && quantity('1').isLessThan(quantity('1500m'))",
        "quantity('1000m') == quantity('1') && quantity('1').compareTo(quantity('2')) == -1",
        "isQuantity('1.5Gi') && !isQuantity('1.5Gx') && quantity('2k').asInteger() == 2000 && !quantity('50m').isInteger()",
        "quantity('1').add(quantity('500m')).asApproximateFloat() == 1.5 && quantity('3').sub(1) == quantity('2')",
        "quantity('-1').sign() == -1 && quantity('0').sign() == 0",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0-alpha.2').isLessThan(semver('1.0.0-alpha.10'))",
        "semver('1.0.0-rc.1').isLessThan(semver('1.0.0')) && semver('1.0.0+a') == semver('1.0.0+b')",
        "isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.2', true) && semver('v01.02', true).minor() == 2",
        "semver('1.2.3').major() == 1 && semver('1.2.3').patch() == 3 && !isSemver('1.2.03') && !isSemver('1.2.3-')",
    ]);
    all_fail(&[
        ("quantity('x')", "is no quantity"),
        ("quantity('50m').asInteger()", "no whole number"),
        ("semver('1')", "is no semantic version"),
        ("quantity('1').isLessThan(1)", "isLessThan() is not defined for (kubernetes.Quantity, int)"),
    ]);
}

#[test]
fn addresses_and_urls_are_kubernetes() {
    all_true(&[
        "isIP('10.0.0.1') && isIP('::1') && !isIP('10.0.0.256') && !isIP('::ffff:1.2.3.4') && ip('::1').family() == 6",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && ip('127.0.0.1').isLoopback() && string(ip('::1')) == '::1'",
        "ip('10.0.0.1').isGlobalUnicast() && ip('169.254.1.1').isLinkLocalUnicast() && ip('224.0.0.1').isLinkLocalMulticast()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "cidr('::/0').prefixLength() == 0 && cidr('::/0').containsIP('::1') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0')",
        "url('https://u:p@example.com:80/a b?x=1&x=2&y=%41').getHost() == 'example.com:80'",
        "url('https://example.com:80/a b?x=1').getEscapedPath() == '/a%20b' && url('https://a?x=1+2&x=3').getQuery() == {'x': ['1 2', '3']}",
        "url('https://[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80' && url('/path').getScheme() == ''",
        "url('HTTP://localhost').getScheme() == 'http' && isURL('/a') && !isURL('a') && !isURL('https://a:b/') && !isURL('http://a b/')",
    ]);
    all_fail(&[("ip('x')", "is no IP address"), ("cidr('x')", "is no CIDR"), ("url('x')", "is no URL")]);
}

#[test]
fn named_formats_are_kubernetes() {
    all_true(&[
        "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('My').hasValue()",
        "format.named('uuid').value().validate('x').value()[0].contains('UUID') && !format.named('x').hasValue()",
        "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()",
        "!format.dns1123Subdomain().validate('a.b').hasValue() && format.dns1123Subdomain().validate('a..b').hasValue()",
        "!format.dns1035Label().validate('a1').hasValue() && format.dns1035Label().validate('1a').hasValue()",
        "!format.qualifiedName().validate('a.b/C_d').hasValue() && !format.labelValue().validate('').hasValue()",
        "!format.dns1123LabelPrefix().validate('a-').hasValue() && !format.uri().validate('https://a/').hasValue()",
        "!format.byte().validate('aGk=').hasValue() && format.byte().validate('aGk').hasValue()",
        "!format.date().validate('2024-01-31').hasValue() && format.datetime().validate('2024-01-31').hasValue()",
    ]);
}
