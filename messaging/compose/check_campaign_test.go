package compose

import (
	"testing"

	"github.com/musterhq/muster/resolver/campaigns"
)

// Links and pictures that no message can have are refused when a campaign is saved.
func TestCheckCampaignRefusesLinksThatNothingOpens(t *testing.T) {
	t.Parallel()
	for _, kind := range []int{campaigns.TypePush, campaigns.TypeInApp} {
		for link, fits := range map[string]bool{
			"": true, "https://shop.example/a": true, "myapp://sale": true, "https://shop.example/{{first_name}}": true,
			"javascript:alert(1)": false, "//x": false, "my app://x": false, "https://": false,
		} {
			x := campaigns.Campaign{Channel: campaigns.ChannelSingle, Type: kind}
			x.Link = link
			if err := CheckCampaign(&x); (err == nil) != fits {
				t.Errorf("%s: link %q: %v", x.Medium(), link, err)
			}
		}
	}
	x := campaigns.Campaign{Channel: campaigns.ChannelSingle, Type: campaigns.TypePush}
	x.Push = &campaigns.PushOptions{Image: "https://"}
	if CheckCampaign(&x) == nil {
		t.Error("a picture without a host is saved")
	}
}
