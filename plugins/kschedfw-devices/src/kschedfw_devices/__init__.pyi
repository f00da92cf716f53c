from .claim_controller import ClaimController as ClaimController
from .dynamic_resources import DynamicResources as DynamicResources
