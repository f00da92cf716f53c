from .results.reading import read_results as read_results
from .results.reading import read_series as read_series
from .results.results import Results as Results
from .results.results import RunResult as RunResult
from .results.values import ResultsError as ResultsError
from .results.writer import ResultsWriter as ResultsWriter
