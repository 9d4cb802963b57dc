package segmenttest

// LiveSegments are the definitions of the segments that benchmarks of ingest
// keep. They are of mixed kinds, over the events and attributes of the load: an
// event touches the conditions of a third to a half of them.
var LiveSegments = []string{
	`{"kind":"activity","event":"page_viewed"}`,
	`{"kind":"activity","event":"page_viewed","window":{"last_days":1},"count":{"op":">=","value":5}}`,
	`{"kind":"activity","event":"page_viewed","did":false,"window":{"last_days":7}}`,
	`{"kind":"activity","event":"item_viewed","window":{"last_days":30},"count":{"op":">=","value":3}}`,
	`{"kind":"activity","event":"item_viewed","where":[{"property":"currency","op":"=","value":"USD"}]}`,
	`{"kind":"activity","event":"item_viewed","window":{"last_days":7},"aggregate":{"fn":"distinct","property":"product_id","op":">=","value":3}}`,
	`{"kind":"activity","event":"cart_added","window":{"last_days":1}}`,
	`{"match":"all","conditions":[{"kind":"activity","event":"cart_added","window":{"last_days":1}},{"kind":"activity","event":"purchased","did":false,"window":{"last_days":1}}]}`,
	`{"kind":"activity","event":"purchased","aggregate":{"fn":"sum","property":"value","op":">=","value":1000000}}`,
	`{"kind":"activity","event":"purchased","window":{"last_days":30},"aggregate":{"fn":"sum","property":"value","op":">=","value":250000}}`,
	`{"kind":"activity","event":"purchased","window":{"last_days":90},"aggregate":{"fn":"max","property":"value","op":">","value":190000}}`,
	`{"kind":"activity","event":"purchased","count":{"op":"<=","value":2}}`,
	`{"kind":"activity","event":"purchased","window":{"last_days":365},"aggregate":{"fn":"avg","property":"value","op":">","value":150000}}`,
	`{"kind":"activity","event":"searched","count":{"op":"=","value":0}}`,
	`{"kind":"activity","event":"searched","window":{"last_days":14},"where":[{"property":"quantity","op":">=","value":5}]}`,
	`{"kind":"attribute","field":"attributes.plan","op":"in","value":["plus","pro"]}`,
	`{"kind":"attribute","field":"geo.country","op":"=","value":"DE"}`,
	`{"kind":"attribute","field":"created_at","op":"in_last_days","value":30}`,
	`{"match":"all","conditions":[{"kind":"activity","event":"page_viewed","window":{"last_days":7}},{"kind":"attribute","field":"attributes.plan","op":"=","value":"free"}]}`,
	`{"match":"any","conditions":[{"kind":"activity","event":"refunded"},{"kind":"activity","event":"purchased","window":{"last_days":7},"count":{"op":">=","value":4}}]}`,
}
