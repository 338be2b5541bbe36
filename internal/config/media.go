package config

// Media says which parts of requests that no guard can read a profile keeps from
// being sent; the zero value lets all of them pass.
type Media struct{ NoImages, NoAudio, NoFiles bool }

// What a profile may say of a kind of media.
const (
	mediaPass = "pass"
	mediaDeny = "deny"
)

func (d decoder) media(n node) (media mediaDecl) {
	members, _ := d.members(n, mediaShape)
	for _, m := range members {
		said := d.oneOf(m.Value, "media of a profile: "+m.Key, mediaPass, mediaDeny)
		switch m.Key {
		case "images":
			media.images = said
		case "audio":
			media.audio = said
		case "files":
			media.files = said
		}
	}
	return media
}

type mediaDecl struct{ images, audio, files at[string] }

// over is what a profile extends, with what it says itself.
func (d mediaDecl) over(m Media) Media {
	for _, said := range []struct {
		at[string]
		no *bool
	}{{d.images, &m.NoImages}, {d.audio, &m.NoAudio}, {d.files, &m.NoFiles}} {
		if said.set {
			*said.no = said.value == mediaDeny
		}
	}
	return m
}

func (m Media) printed() object {
	said := func(no bool) string {
		if no {
			return mediaDeny
		}
		return mediaPass
	}
	return object{{"images", said(m.NoImages)}, {"audio", said(m.NoAudio)}, {"files", said(m.NoFiles)}}
}
