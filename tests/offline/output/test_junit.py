"""JUnit reports: the numbers of cases and failures."""

from xml.etree.ElementTree import Element, SubElement

from wharfinger.offline.output.junit import junit_report


def test_a_report_counts_cases_and_failures() -> None:
    good, bad = Element("testcase", {"name": "good"}), Element("testcase", {"name": "bad"})
    SubElement(bad, "failure", {"message": "1 < 2"})
    assert junit_report("all", [good, bad]) == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<testsuite name="all" tests="2" failures="1" errors="0"><testcase name="good" />'
        '<testcase name="bad"><failure message="1 &lt; 2" /></testcase></testsuite>\n'
    )
