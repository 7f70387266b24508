"""When will it be done? Forecasts for people: series, charts, sentences, previews."""
