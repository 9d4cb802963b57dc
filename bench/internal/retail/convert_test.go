package retail

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

const head = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"

const some = head +
	"536365,85123A,WHITE HANGING HEART,6,2010-12-01 08:26:00,2.55,17850.0,United Kingdom\n" +
	"536365,85123A,WHITE HANGING HEART,6,2010-12-01 08:26:00,2.55,17850.0,United Kingdom\n" +
	"C536379,D,\"Discount, 7\"\" <&>\",-3,2010-12-01 09:41:00,27.505,14527.0,EIRE\n" +
	"536414,22139,,56,2010-12-01 11:52:00,0.0,,United Kingdom\n" +
	"536414,22139,X,1000,2010-12-01 11:52:00,0.001,12345,France\n"

var someTotals = Totals{Rows: 5, WithoutCustomer: 1, Purchases: 3, Returns: 1, Customers: 3, Buyers: 2, PurchasedValue: "31.6"}

func TestConvert(t *testing.T) {
	var out bytes.Buffer
	totals, err := Convert(strings.NewReader(some), &out)
	if err != nil {
		t.Fatal(err)
	}
	if totals != someTotals {
		t.Errorf("totals %+v, want %+v", totals, someTotals)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	want := []string{
		`{"event_type":"item_purchased","user":{"external_id":"17850","geo":{"country":"United Kingdom"}},"properties":{"value":15.3,"quantity":6,"unit_price":2.55,"currency":"GBP","product_id":"85123A","description":"WHITE HANGING HEART","invoice":"536365"},"timestamp":"2010-12-01T08:26:00Z"}`,
		"",
		`{"event_type":"item_returned","user":{"external_id":"14527","geo":{"country":"EIRE"}},"properties":{"value":-82.515,"quantity":-3,"unit_price":27.505,"currency":"GBP","product_id":"D","description":"Discount, 7\" <&>","invoice":"C536379"},"timestamp":"2010-12-01T09:41:00Z"}`,
		`{"event_type":"item_purchased","user":{"external_id":"12345","geo":{"country":"France"}},"properties":{"value":1,"quantity":1000,"unit_price":0.001,"currency":"GBP","product_id":"22139","description":"X","invoice":"536414"},"timestamp":"2010-12-01T11:52:00Z"}`,
	}
	want[1] = want[0]
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d", len(lines), len(want))
	}
	for i := range want {
		if lines[i] != want[i] {
			t.Errorf("line %d:\n%s\nwant\n%s", i, lines[i], want[i])
		}
	}
}

func TestConvertReadsZstd(t *testing.T) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, some); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	totals, err := Convert(&packed, io.Discard)
	if err != nil || totals != someTotals {
		t.Errorf("totals %+v, %v", totals, err)
	}
}

func TestConvertNamesTheFault(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a,b,c,d,e,f,g,h\n", "not the Online Retail file"},
		{"a,b\n", "head"},
		{head + "1,2,3\n", "row 1"},
		{some + "1,X,Y,six,2010-12-01 11:52:00,1,1.0,France\n", "row 6: Quantity"},
		{head + "1,X,Y,6,2010-12-01 11:52:00,1e3,1.0,France\n", "row 1: UnitPrice"},
		{head + "1,X,Y,6,01/12/2010 11:52,1,1.0,France\n", "row 1: InvoiceDate"},
		{head + "1,X,\xa3,6,2010-12-01 11:52:00,1,1.0,France\n", "row 1: Description is no UTF-8"},
	} {
		if _, err := Convert(strings.NewReader(c.text), io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestDecimals(t *testing.T) {
	for _, c := range []struct {
		price string
		times int64
		want  string
	}{
		{"2.55", 6, "15.3"}, {"0.1", 3, "0.3"}, {"0.0", 5, "0"}, {"12", -2, "-24"}, {"-0.005", 1, "-0.005"},
		{"0.001", 7, "0.007"}, {"100", 10, "1000"}, {"1714.17", 1, "1714.17"}, {"0.50", -1, "-0.5"},
		{"99999999999.999999999", 1_000_000, "99999999999999999"},
	} {
		d, err := parseDecimal(c.price)
		if err != nil {
			t.Fatal(err)
		}
		exact, _ := new(big.Rat).SetString(c.price)
		exact.Mul(exact, new(big.Rat).SetInt64(c.times))
		got, ok := new(big.Rat).SetString(d.times(c.times).String())
		if !ok || got.Cmp(exact) != 0 {
			t.Errorf("%s × %d is %s", c.price, c.times, d.times(c.times))
		}
		if s := d.times(c.times).String(); c.times != 1_000_000 && s != c.want {
			t.Errorf("%s × %d is %s, want %s", c.price, c.times, s, c.want)
		}
	}
	for _, bad := range []string{"", ".", "-", "1e3", "+1", "1.2.3", "--1", "0x1", "1.0000000001", " 1"} {
		if d, err := parseDecimal(bad); err == nil {
			t.Errorf("%q passed as %s", bad, d)
		}
	}
	sum := decimal{}
	for _, s := range []string{"0.5", "1.25", "3", "-0.001"} {
		d, _ := parseDecimal(s)
		sum.add(d)
	}
	if sum.String() != "4.749" {
		t.Errorf("sum %s", sum.String())
	}
}

// The totals of the real file, which the repository does not carry.
func TestOnlineRetailTotals(t *testing.T) {
	path := os.Getenv("MUSTER_RETAIL_CSV")
	if path == "" {
		t.Skip("set MUSTER_RETAIL_CSV to the path of online_retail.csv or online_retail.csv.zst to check the real file's totals")
	}
	file, err := os.Open(path)
	if os.IsNotExist(err) {
		t.Skipf("MUSTER_RETAIL_CSV names %s, and there is no such file", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, w := io.Pipe()
	type result struct {
		totals Totals
		err    error
	}
	done := make(chan result, 1)
	go func() {
		totals, err := Convert(file, w)
		w.CloseWithError(err)
		done <- result{totals, err}
	}()
	spent, uk, lands, events := readBack(t, r)
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	want := Totals{Rows: 541_909, WithoutCustomer: 135_080, Purchases: 397_924, Returns: 8_905,
		Customers: 4_372, Buyers: 4_339, PurchasedValue: "8911407.904"}
	if got.totals != want {
		t.Errorf("totals %+v, want %+v", got.totals, want)
	}
	big1000, thousand, several := big.NewRat(1000, 1), 0, 0
	for _, v := range spent {
		if v.Cmp(big1000) >= 0 {
			thousand++
		}
	}
	for _, n := range lands {
		if len(n) > 1 {
			several++
		}
	}
	if events != 406_829 || thousand != 1_668 || uk != 3_950 || several != 8 {
		t.Errorf("%d events, %d customers bought for 1,000 or more, %d from the United Kingdom, %d with several countries; want 406829, 1668, 3950, 8",
			events, thousand, uk, several)
	}
}

// readBack adds up the written lines: what each customer bought for, how many
// have a row from the United Kingdom, and each one's countries.
func readBack(t *testing.T, r io.Reader) (spent map[string]*big.Rat, uk int, lands map[string]map[string]bool, events int) {
	t.Helper()
	spent, lands = map[string]*big.Rat{}, map[string]map[string]bool{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		events++
		id := e.User.ExternalID
		if lands[id] == nil {
			lands[id] = map[string]bool{}
		}
		if country := e.User.Geo.Country; !lands[id][country] {
			lands[id][country] = true
			if country == "United Kingdom" {
				uk++
			}
		}
		if e.EventType != "item_purchased" {
			continue
		}
		value, ok := new(big.Rat).SetString(e.Properties.Value.String())
		if !ok {
			t.Fatalf("value %q", e.Properties.Value)
		}
		if spent[id] == nil {
			spent[id] = new(big.Rat)
		}
		spent[id].Add(spent[id], value)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return spent, uk, lands, events
}
