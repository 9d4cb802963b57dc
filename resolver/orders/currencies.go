package orders

import "strings"

// currencies are the codes of ISO 4217 that are in use: list one of its maintenance agency
// (https://www.six-group.com/en/products-services/financial-information/market-reference-data/data-standards.html,
// list-one.xml) as of January 2026, with funds and metals. Codes withdrawn since 2023 stay, so that
// orders of that time can be imported. A code that is added changes what Apply makes of records,
// and needs a version of the rules.
var currencies = codes(`
	AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD
	CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP
	GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR
	KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN
	MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
	SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX
	USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR XOF XPD
	XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWG`,
	"ANG BGN HRK SLL ZWL", // withdrawn
)

func codes(lists ...string) map[string]bool {
	all := map[string]bool{}
	for _, list := range lists {
		for code := range strings.FieldsSeq(list) {
			all[code] = true
		}
	}
	return all
}
