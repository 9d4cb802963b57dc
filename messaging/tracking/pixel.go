package tracking

// PixelType is the content type of the pixel. It is to be served with
// "Cache-Control: no-store", or opens after the first are not seen.
const PixelType = "image/gif"

const pixel = "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff" +
	"!\xf9\x04\x01\x00\x00\x00\x00" +
	",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"

// Pixel is a transparent GIF of one by one pixel, 43 bytes.
func Pixel() []byte { return []byte(pixel) }

// pixelBefore and pixelAfter stand around the pixel's URL. display:none would keep
// some programs from fetching it.
const (
	pixelBefore = `<img src="`
	pixelAfter  = `" width="1" height="1" alt="" style="display:block;width:1px;height:1px;border:0" />`
)
