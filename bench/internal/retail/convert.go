package retail

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// columns of the file, in their order.
var columns = []string{"InvoiceNo", "StockCode", "Description", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID", "Country"}

const (
	colInvoice = iota
	colStock
	colDescription
	colQuantity
	colDate
	colPrice
	colCustomer
	colCountry
)

// Totals is what was converted.
type Totals struct {
	// Rows is all rows, WithoutCustomer those left out.
	Rows, WithoutCustomer int
	Purchases, Returns    int
	// Customers have at least one row, Buyers at least one purchase.
	Customers, Buyers int
	// PurchasedValue is the value of all purchases, exact.
	PurchasedValue string
}

type event struct {
	EventType  string     `json:"event_type"`
	User       user       `json:"user"`
	Properties properties `json:"properties"`
	Timestamp  string     `json:"timestamp"`
}

type user struct {
	ExternalID string `json:"external_id"`
	Geo        geo    `json:"geo"`
}

type geo struct {
	Country string `json:"country"`
}

type properties struct {
	Value       json.Number `json:"value"`
	Quantity    int64       `json:"quantity"`
	UnitPrice   json.Number `json:"unit_price"`
	Currency    string      `json:"currency"`
	ProductID   string      `json:"product_id"`
	Description string      `json:"description"`
	Invoice     string      `json:"invoice"`
}

// zstdMagic begins a zstd frame.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// maxWindow bounds the memory that decompressing may take.
const maxWindow = 128 << 20

// Convert reads the file as CSV, compressed by zstd or not, and writes JSON
// lines. An error names the row.
func Convert(in io.Reader, out io.Writer) (Totals, error) {
	plain := bufio.NewReaderSize(in, 1<<16)
	var source io.Reader = plain
	if magic, _ := plain.Peek(len(zstdMagic)); bytes.Equal(magic, zstdMagic) {
		d, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return Totals{}, fmt.Errorf("decompressing: %w", err)
		}
		defer d.Close()
		source = d
	}
	rows := csv.NewReader(source)
	rows.FieldsPerRecord = len(columns)
	rows.ReuseRecord = true
	head, err := rows.Read()
	if err != nil {
		return Totals{}, fmt.Errorf("reading the head: %w", err)
	}
	head[0] = strings.TrimPrefix(head[0], "\ufeff")
	if !slices.Equal(head, columns) {
		return Totals{}, fmt.Errorf("columns are %q, want %q: this is not the Online Retail file", head, columns)
	}
	c := newConverter(out)
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return c.totals(), nil
		}
		if err != nil {
			return c.totals(), fmt.Errorf("reading row %d: %w", c.sums.Rows+1, err)
		}
		if err := c.row(row); err != nil {
			return c.totals(), fmt.Errorf("row %d: %w", c.sums.Rows, err)
		}
	}
}

type converter struct {
	encoder *json.Encoder
	sums    Totals
	value   decimal
	// buyers holds every customer, and whether they bought.
	buyers map[string]bool
}

func newConverter(out io.Writer) *converter {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return &converter{encoder: e, buyers: map[string]bool{}}
}

func (c *converter) row(row []string) error {
	c.sums.Rows++
	customer := strings.TrimSuffix(row[colCustomer], ".0")
	if customer == "" {
		c.sums.WithoutCustomer++
		return nil
	}
	for i, cell := range row {
		if !utf8.ValidString(cell) {
			return fmt.Errorf("%s is no UTF-8 text; convert the file from ISO-8859-1 first", columns[i])
		}
	}
	quantity, err := strconv.ParseInt(row[colQuantity], 10, 64)
	if err != nil {
		//nolint:staticcheck // Quantity is the name of the column
		return fmt.Errorf("Quantity: %w", err)
	}
	price, err := parseDecimal(row[colPrice])
	if err != nil {
		return fmt.Errorf("UnitPrice: %w", err)
	}
	at, err := time.Parse(time.DateTime, row[colDate])
	if err != nil {
		return fmt.Errorf("InvoiceDate: %w", err)
	}
	value := price.times(quantity)
	e := event{
		EventType: "item_purchased",
		User:      user{customer, geo{row[colCountry]}},
		Properties: properties{
			Value: json.Number(value.String()), Quantity: quantity, UnitPrice: json.Number(price.String()), Currency: "GBP",
			ProductID: row[colStock], Description: row[colDescription], Invoice: row[colInvoice],
		},
		Timestamp: at.Format(time.RFC3339),
	}
	bought := !strings.HasPrefix(row[colInvoice], "C")
	if bought {
		c.sums.Purchases++
		c.value.add(value)
	} else {
		c.sums.Returns++
		e.EventType = "item_returned"
	}
	customer = strings.Clone(customer)
	c.buyers[customer] = c.buyers[customer] || bought
	return c.encoder.Encode(&e)
}

func (c *converter) totals() Totals {
	t := c.sums
	t.Customers = len(c.buyers)
	for _, bought := range c.buyers {
		if bought {
			t.Buyers++
		}
	}
	t.PurchasedValue = c.value.String()
	return t
}
