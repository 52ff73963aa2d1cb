package fence

// JudgedLabel on a new VolumeAttachment, with the value "true", says that Fairlead
// is there and judges it. Where it is missing the API server judges by itself,
// from less.
const JudgedLabel = "fairlead.io/judged"
