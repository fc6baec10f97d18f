//! The currencies that ISO 4217 lists, and how many decimals each has.

/// Active codes, and those of the last years that old price books may still name. Source: ISO 4217 list one, and list three
/// for ANG, BGN, HRK, SLL and ZWL. Funds codes, metals, XXX and XTS are no money to pay with and stay out.
const LISTED: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD \
    CDF CHF CLF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD \
    HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD \
    MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON \
    RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH \
    UGX USD UYI UYU UYW UZS VED VES VND VUV WST XAF XCD XCG XOF XPF YER ZAR ZMW ZWG ZWL";

/// Currencies whose minor unit isn't a hundredth. Source: ISO 4217 list one, column "minor unit".
const UNUSUAL_MINOR_DIGITS: &[(&str, u8)] = &[
    ("BHD", 3),
    ("BIF", 0),
    ("CLF", 4),
    ("CLP", 0),
    ("DJF", 0),
    ("GNF", 0),
    ("IQD", 3),
    ("ISK", 0),
    ("JOD", 3),
    ("JPY", 0),
    ("KMF", 0),
    ("KRW", 0),
    ("KWD", 3),
    ("LYD", 3),
    ("OMR", 3),
    ("PYG", 0),
    ("RWF", 0),
    ("TND", 3),
    ("UGX", 0),
    ("UYI", 0),
    ("UYW", 4),
    ("VND", 0),
    ("VUV", 0),
    ("XAF", 0),
    ("XOF", 0),
    ("XPF", 0),
];

/// Decimals of a currency's minor unit; none for a code that isn't listed.
pub(crate) fn minor_digits(code: &str) -> Option<u8> {
    LISTED
        .split_ascii_whitespace()
        .any(|listed| listed == code)
        .then(|| UNUSUAL_MINOR_DIGITS.iter().find(|(unusual, _)| *unusual == code).map_or(2, |(_, digits)| *digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unusual_currency_is_listed() {
        for (code, digits) in UNUSUAL_MINOR_DIGITS {
            assert_eq!(minor_digits(code), Some(*digits), "{code}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_no_currency() {
        assert_eq!(minor_digits("CNY"), Some(2));
        assert_eq!(minor_digits("CYN"), None);
        assert_eq!(minor_digits(""), None);
    }
}
